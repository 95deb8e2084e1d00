import type { Refusal } from '../http/refusal.ts'
import type { IssuedTokens } from '../tokens/token-contract.ts'

export type GrantResult =
  | { readonly kind: 'granted'; readonly tokens: IssuedTokens }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** One grant type. A new one needs a module that makes a `Grant`, and a line in `compose/token-services.ts`. */
export interface Grant<Parameter extends string = string> {
  /** The value of `grant_type`, and the `grant` label of its metrics. */
  readonly name: string
  /** The other parameters that the form must hold, none of them empty. */
  readonly parameters: readonly Parameter[]
  // A method, not a function property: its parameters are bivariant, so grants with different parameters fit in one list.
  exchange(given: Readonly<Record<Parameter, string>>, client: string): GrantResult | Promise<GrantResult>
}

export function refuse(refusal: Refusal): GrantResult {
  return { kind: 'refused', refusal }
}
