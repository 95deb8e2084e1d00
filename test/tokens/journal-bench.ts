import { openJournal } from '../../src/tokens/journal.ts'
import type { TokenPolicy } from '../../src/tokens/token-contract.ts'
import type { TokenJournal } from '../../src/tokens/token-journal.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { type Bench, createBench } from './support.ts'

export interface JournalBench extends Bench {
  readonly journal: TokenJournal
  /** What the journal reported, in order. */
  readonly reports: string[]
}

type Options = Partial<TokenPolicy> & { readonly clock?: Bench['clock'] }

/** A store on a journal in `dir`, as a sidecar has it. */
export function openBench(dir: string, { clock = stillClock(), ...policy }: Options = {}): JournalBench {
  const reports: string[] = []
  const opened = openJournal({
    dir,
    clock,
    listener: {
      failed: (operation) => reports.push(`trouble: ${operation}`),
      recovered: () => reports.push('recovered'),
      setAside: (fault) => reports.push(`set aside: ${fault}`),
    },
  })
  if (opened.kind === 'locked') throw new Error(opened.message)
  const { journal } = opened
  closeLater(journal.close)
  return { ...createBench(policy, journal, clock), journal, reports }
}
