import type { Refusal } from '../../src/http/refusal.ts'

/** A refusal as the cases show it: its kind, and its sentence or the methods that it allows. */
export function refusalText(refusal: Refusal): string {
  if ('description' in refusal) return `${refusal.kind}: ${refusal.description}`
  return 'allow' in refusal ? `${refusal.kind}: ${refusal.allow}` : refusal.kind
}
