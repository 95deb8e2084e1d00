import { Account, type Holder } from '../../src/memory/account.ts'
import { stillClock } from './clock.ts'

/** An account that never fills. */
export function roomyAccount(): Account {
  return new Account({ limit: 2 ** 40, clock: stillClock(), onStage() {}, onShed() {} })
}

/** A holder from which nothing is taken. */
export const NO_HOLDER: Holder = {
  working: true,
  atDevice: false,
  giveUpUnread: () => 0,
  drop() {},
}
