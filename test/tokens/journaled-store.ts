import type { TokenPolicy } from '../../src/tokens/grant-rules.ts'
import { createGrantTable } from '../../src/tokens/grant-table.ts'
import { openJournal, type TokenJournal } from '../../src/tokens/journal.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { createTestStore, POLICY, SECOND, type TestStore } from './support.ts'

export interface JournaledStore extends TestStore {
  readonly journal: TokenJournal
  /** Every report of the journal, in order. */
  readonly reports: string[]
  /** The errors of its troubles. */
  readonly errors: unknown[]
}

type Options = Partial<TokenPolicy> & {
  readonly clock?: TestStore['clock']
  readonly uptime?: () => number
  /** The name that grants without a name get. */
  readonly heir?: string
}

/** Opens a store with a journal in `dir`, as a sidecar does. */
export function openJournaledStore(
  dir: string,
  { clock = stillClock(), uptime = () => clock.monotonic() / SECOND, heir = '', ...policy }: Options = {},
): JournaledStore {
  const reports: string[] = []
  const errors: unknown[] = []
  const whole = { ...POLICY, ...policy }
  const table = createGrantTable(whole.capacity)
  const journal = openJournal({
    dir,
    clock,
    uptime,
    table,
    policy: whole,
    heir,
    listener: {
      failed(operation, error) {
        reports.push(`trouble: ${operation}`)
        errors.push(error)
      },
      recovered: () => reports.push('recovered'),
      clock: () => {},
      copied: () => reports.push('copied'),
      setAside: (fault) => reports.push(`set aside: ${fault}`),
    },
  })
  closeLater(journal.close)
  return { ...createTestStore(policy, journal, clock, table), journal, reports, errors }
}
