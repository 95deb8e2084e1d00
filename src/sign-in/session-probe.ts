import { DeviceFault } from '../device/failure.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Logins } from './logins.ts'
import type { PresentSession } from './present-session.ts'
import type { Scheme, Session } from './scheme.ts'
import type { SessionLife } from './session-life.ts'

interface SessionProbeOptions {
  readonly scheme: Scheme
  readonly present: PresentSession
  readonly life: SessionLife
  readonly logins: Logins
}

/** Asks the device whether it still takes the session, before a request that could not be repeated. */
export function createSessionProbe({ scheme, present, life, logins }: SessionProbeOptions) {
  /** False once a probe has called a session over that had only just begun: probes are then not conclusive at this device. */
  let tells = scheme.probe !== undefined
  let probing: Promise<UpstreamFailure | undefined> | undefined

  async function probe(): Promise<UpstreamFailure | undefined> {
    const session = present.inUse?.session
    if (session === undefined || (await isAlive(session)) !== false || present.inUse?.session !== session)
      return undefined
    life.seenOver()
    present.retire()
    const failure = await logins.signIn()
    // Without a path that needs a login, the device may redirect every client to the login page.
    const next = present.inUse?.session
    if (next !== undefined && (await isAlive(next)) === false) tells = false
    return failure
  }

  async function isAlive(session: Session): Promise<boolean | undefined> {
    try {
      const alive = await scheme.probe?.(session)
      if (alive === true && present.inUse?.session === session) life.seenAlive()
      return alive
    } catch (error) {
      // The request itself will show what is wrong with the device.
      if (error instanceof DeviceFault) return undefined
      throw error
    }
  }

  return {
    isRunning: (): boolean => probing !== undefined,
    /** True if a probe is worth a request: probes are conclusive at this device, and the last proof of life is old. */
    isDue: (): boolean => tells && !life.isKnownPause,
    /**
     * Probes the session, and signs in if it is over. Concurrent callers share one probe. Returns the failure if that login gets no
     * response.
     */
    probe(): Promise<UpstreamFailure | undefined> {
      probing ??= probe().finally(() => {
        probing = undefined
      })
      return probing
    },
  }
}
