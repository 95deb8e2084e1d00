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

/** Looks whether the device still takes the session, before a request that could not be repeated. */
export function createSessionLook({ scheme, present, life, logins }: SessionLookOptions) {
  /** False once a look has called a session over that had just begun: looks then say nothing at this device. */
  let tells = scheme.look !== undefined
  let looking: Promise<UpstreamFailure | undefined> | undefined

  async function look(): Promise<UpstreamFailure | undefined> {
    const session = present.inUse?.session
    if (session === undefined || (await isAlive(session)) !== false || present.inUse?.session !== session)
      return undefined
    life.seenOver()
    present.retire()
    const failure = await logins.signIn()
    // Without a path that needs a login, the device may lead every client to the login page there.
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
    /** Whether a look may say something new: it tells at this device, and the session was not seen alive for long. */
    isDue: (): boolean => tells && !life.isKnownPause,
    /** Signs in if the session is over. Concurrent callers share one look. Returns the failure if that login gets no response. */
    look(): Promise<UpstreamFailure | undefined> {
      looking ??= look().finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}
