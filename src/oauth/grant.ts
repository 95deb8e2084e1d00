import type { Refusal } from '../http/refusal.ts'
import type { IssuedTokens } from '../tokens/token-contract.ts'

export type GrantResult =
  | { readonly kind: 'granted'; readonly tokens: IssuedTokens }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** One grant type. Adding one takes a module that makes a `Grant`, and its line in `token-services.ts`. */
export interface Grant<Parameter extends string = string> {
  /** The value of `grant_type` that asks for it, and the `grant` label of its metrics. */
  readonly name: string
  /** The parameters that the form must carry besides, none of them empty. */
  readonly parameters: readonly Parameter[]
  // A method, so that grants of different parameters stand in one list; each is given exactly the ones that it names.
  exchange(given: Readonly<Record<Parameter, string>>, client: string): GrantResult | Promise<GrantResult>
}

export function refuse(refusal: Refusal): GrantResult {
  return { kind: 'refused', refusal }
}
