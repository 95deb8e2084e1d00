import type { Logger } from '../record/log.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { reasonOf } from '../system/node-permission.ts'

/** Calls `report` once for a problem with the same reason, and again when it comes back. Undefined: there is none now. */
export function reportOnce(report: (problem: unknown) => void): (problem: unknown) => void {
  let last: string | undefined
  return (problem) => {
    const reason = problem === undefined ? undefined : reasonOf(problem)
    if (reason !== undefined && reason !== last) report(problem)
    last = reason
  }
}

/** Reads what clients may call this machine, and warns if its addresses cannot be read. */
export function createNameReader(machine: () => MachineNames, log: Logger): () => MachineNames {
  const report = reportOnce((reason) =>
    log.warn({ reason }, 'the addresses of this machine cannot be read: name them in listen.tls'),
  )
  return () => {
    const found = machine()
    report(found.problem)
    return found
  }
}

export interface NameWatchDependencies {
  readonly read: () => readonly string[]
  /** Called when two looks in turn find the same names, because interfaces come up one by one. Must not reject. */
  readonly onSettled: () => Promise<void>
  /** Time from the end of one look to the next (ms). One costs 0.1 ms. */
  readonly interval: number
}

/** Looks at the names of the machine again and again. The next look waits until `onSettled` is done, because a disk may hang. */
export function watchNames({ read, onSettled, interval }: NameWatchDependencies): {
  readonly close: () => void
} {
  let seen = ''
  let closed = false
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    const names = read().join()
    const settled = names === seen
    seen = names
    if (settled) await onSettled()
    if (!closed) lookLater()
  }

  function lookLater(): void {
    timer = setTimeout(() => void look(), interval).unref()
  }

  lookLater()
  return {
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
