import type { Fault } from './fault.ts'
import { BEARER_FAULTS, DISGUISE_FAULTS, HOST_FAULTS } from './faults/bearer.ts'
import { FORM_FAULTS } from './faults/forms.ts'
import { FIELD_FAULTS, TOO_MANY_FAULTS } from './faults/limit-fields.ts'
import { REFUSAL_FAULTS } from './faults/refusals.ts'
import { LOGIN_FAULTS, REFRESH_FAULTS } from './faults/tokens.ts'
import { BYPASS_FAULTS, COUNT_FAULTS, FLOOD_FAULTS, WINDOW_FAULTS } from './faults/windows.ts'

/** Every fault that `postern verify` must find, and report as nothing else. */
export const FAULTS: readonly Fault[] = [
  ...FORM_FAULTS,
  ...LOGIN_FAULTS,
  ...REFUSAL_FAULTS,
  ...REFRESH_FAULTS,
  ...BEARER_FAULTS,
  ...HOST_FAULTS,
  ...DISGUISE_FAULTS,
  ...COUNT_FAULTS,
  ...WINDOW_FAULTS,
  ...TOO_MANY_FAULTS,
  ...FIELD_FAULTS,
  ...BYPASS_FAULTS,
  ...FLOOD_FAULTS,
]

/** The fault of this name. */
export function faultNamed(name: string): Fault {
  const found = FAULTS.find((fault) => fault.name === name)
  if (found === undefined) throw new Error(`there is no fault ${name}`)
  return found
}
