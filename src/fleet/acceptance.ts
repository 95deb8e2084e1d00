import { type Clock, rest } from '../system/clock.ts'
import { forbiddenCommands } from './server-report.ts'
import { type SharedStoreListener, type StoreReply, StoreUnavailable } from './shared-store.ts'

/** How often a server that refuses commands is asked again (ms). */
const INTERVAL = 1_000

/**
 * Watches a server that answers but refuses commands: it is full, accepts no writes, or its user lacks a right. Requests do not show when
 * the refusal ends: a load balancer sends none to a sidecar that is not ready, and a script that succeeds may have written nothing. So
 * the server is asked until it accepts all commands.
 *
 * @param ask asks the server; rejects after it has reported a refusal to `refused`
 */
export function watchAcceptance(
  ask: (question: readonly string[]) => Promise<StoreReply>,
  prefix: string,
  listener: Pick<SharedStoreListener, 'refusing' | 'accepting'>,
  clock: Pick<Clock, 'after'>,
) {
  let refusal: StoreUnavailable | undefined

  /** Whether the server accepts all commands of Postern. */
  async function acceptsAll(): Promise<boolean> {
    try {
      const forbidden = await forbiddenCommands(ask, prefix)
      if (forbidden.length === 0) return true
      const message = `the user of the server may not run ${forbidden.join(', ')}; see its ACL`
      refused(new StoreUnavailable('connect', 'refused', message))
    } catch {
      // `ask` has reported the refusal of the question itself.
    }
    return false
  }

  function refused(error: StoreUnavailable): void {
    if (refusal !== undefined) return
    refusal = error
    listener.refusing(error)
    void awaitAcceptance(error)
  }

  async function awaitAcceptance(present: StoreUnavailable): Promise<void> {
    while (refusal === present) {
      await rest(clock, INTERVAL)
      // The session may have ended meanwhile, and its refusal with it.
      if (refusal !== present || !(await acceptsAll()) || refusal !== present) continue
      refusal = undefined
      listener.accepting()
    }
  }

  return {
    /** Why the server refuses commands; undefined without a known refusal. */
    get trouble(): string | undefined {
      return refusal?.message
    },
    /** Asks the server once, so that a sidecar without logins notices a refusal, too. */
    look: (): void => void acceptsAll(),
    refused,
    /** Forgets the refusal at the end of a session: the next session may lead to another server. */
    forget(): void {
      refusal = undefined
    },
  }
}
