import type { Refusal } from '../../src/http/refusal.ts'

/** A refusal as the cases show it: its kind, and its sentence if it has one of its own. */
export function refusalText(refusal: Refusal): string {
  return 'description' in refusal ? `${refusal.kind}: ${refusal.description}` : refusal.kind
}
