import type { Refusal } from '../http/refusal.ts'

/** The tokens of a successful grant. */
export interface GrantedTokens {
  readonly accessToken: string
  readonly refreshToken: string
  /** Lifetime of the access token in seconds. */
  readonly expiresIn: number
}

export type GrantResult =
  | { readonly kind: 'granted'; readonly tokens: GrantedTokens }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** One grant type: what it asks of the form, and what it gives for it. */
export interface Grant {
  /** The parameter that must be there, and not empty. */
  readonly parameter: string
  readonly exchange: (value: string, client: string) => GrantResult | Promise<GrantResult>
}

export function refuse(refusal: Refusal): GrantResult {
  return { kind: 'refused', refusal }
}
