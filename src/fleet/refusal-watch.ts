import type { KeptConnection } from './kept-connection.ts'
import { forbiddenIn, probeQuestion } from './server-probe.ts'
import { StoreUnavailable } from './shared-store.ts'

/** How often a server that refuses commands is asked whether it still does (ms). */
const PROBE_INTERVAL = 1_000

interface RefusalWatchSettings {
  /** `store.prefix`. */
  readonly prefix: string
  /** `store.timeout` (ms). */
  readonly timeout: number
  readonly ask: KeptConnection['ask']
  /** The server answers, but refuses commands. Called once until `accepting`, or until the connection ends. */
  readonly refusing: (error: StoreUnavailable) => void
  readonly accepting: () => void
}

/** Whether a server that answers refuses commands: it is full, accepts no writes, or its user lacks a right. */
interface RefusalWatch {
  readonly present: StoreUnavailable | undefined
  /** A connection is open: asks at once, so that a sidecar without logins knows it, too. */
  opened(): void
  /** The server has refused a command. */
  refused(error: StoreUnavailable): void
  /** The connection has ended. */
  closed(): void
}

/**
 * Asks a server that refuses commands once a second until it accepts all of them. Requests cannot tell: a load balancer sends none to a
 * sidecar that is not ready, and a script that succeeds may have written nothing.
 */
export function watchRefusals(settings: RefusalWatchSettings): RefusalWatch {
  const { prefix, timeout, ask, refusing, accepting } = settings
  let present: StoreUnavailable | undefined
  let timer: NodeJS.Timeout | undefined

  async function probe(): Promise<void> {
    timer = undefined
    try {
      // A refusal of the probe itself arrives as an event of the connection.
      const forbidden = forbiddenIn(await ask('connect', probeQuestion(prefix), timeout))
      if (forbidden.length > 0) return refused(mayNot(forbidden))
    } catch {
      return
    }
    if (present === undefined) return
    present = undefined
    accepting()
  }

  function refused(error: StoreUnavailable): void {
    timer ??= setTimeout(probe, PROBE_INTERVAL)
    if (present !== undefined) return
    present = error
    refusing(error)
  }

  return {
    get present() {
      return present
    },
    opened: () => void probe(),
    refused,
    closed() {
      clearTimeout(timer)
      timer = undefined
      present = undefined
    },
  }
}

function mayNot(commands: readonly string[]): StoreUnavailable {
  const message = `the user of the server may not run ${commands.join(', ')}; see its ACL`
  return new StoreUnavailable('connect', 'refused', message)
}
