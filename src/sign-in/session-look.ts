import { DeviceFault } from '../device/failure.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Logins } from './logins.ts'
import type { PresentSession } from './present-session.ts'
import type { Scheme, Session } from './scheme.ts'
import type { SessionLife } from './session-life.ts'

interface SessionLookOptions {
  readonly scheme: Scheme
  readonly present: PresentSession
  readonly life: SessionLife
  readonly logins: Logins
}

/** Asks the device whether it still takes the session, before a request that could not be repeated. */
export function createSessionLook({ scheme, present, life, logins }: SessionLookOptions) {
  /** False once a look has called a session over that had only just begun: looks are then not conclusive at this device. */
  let tells = scheme.look !== undefined
  let looking: Promise<UpstreamFailure | undefined> | undefined

  async function look(): Promise<UpstreamFailure | undefined> {
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
      const alive = await scheme.look?.(session)
      if (alive === true && present.inUse?.session === session) life.seenAlive()
      return alive
    } catch (error) {
      // The request itself will show what is wrong with the device.
      if (error instanceof DeviceFault) return undefined
      throw error
    }
  }

  return {
    /** True if a look is worth a request: looks are conclusive at this device, and the last proof of life is old. */
    isDue: (): boolean => tells && !life.isKnownPause,
    /**
     * Looks at the session, and signs in if it is over. Concurrent callers share one look. Returns the failure if that login gets no
     * response.
     */
    look(): Promise<UpstreamFailure | undefined> {
      looking ??= look().finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}
