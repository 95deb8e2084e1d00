import type { GrantSummary } from './grant-table.ts'
import type { Outlets } from './state-events.ts'

/**
 * An operator's request for one access token without a refresh token, for a client that cannot log in. Its grant is called an issued grant.
 * No login evicts an issued grant, and a change of its password revokes it like every other (C8).
 */
export interface Handout {
  /** The name of the password, which gives the token its `allow` and whose change revokes it; empty for `password`. */
  readonly name: string
  /** The operator's name for the token; may be empty. */
  readonly label: string
  /** Milliseconds. */
  readonly lifetime: number
}

export interface HandedOut {
  readonly accessToken: string
  /** The id of its grant. */
  readonly grant: string
  /** On the wall clock (ms). */
  readonly expiresAt: number
}

/** The maximum number of issued grants exists. `longestUnused`: the one with the longest time since its last use. */
export interface AllIssued {
  readonly longestUnused: GrantSummary | undefined
}

/** A live issued grant. An alarm names it before its token ends. */
export type IssuedGrant = GrantSummary & { readonly label: string }

/** The `grant` label of issued grants in `postern_tokens_issued_total`. */
export const ISSUED = 'issued'

/** The `client` of an issued grant: the client that will use the token is unknown when the token is issued. */
export const OPERATOR = 'operator'

/** The issued grants among these. */
export function issuedOf(grants: readonly GrantSummary[]): readonly IssuedGrant[] {
  return grants.flatMap((grant) => (grant.label === undefined ? [] : { ...grant, label: grant.label }))
}

/** The grant whose last use is longest ago. A grant without a use since the start precedes the others; of several, the oldest does. */
export function longestUnused(grants: readonly GrantSummary[]): GrantSummary | undefined {
  return grants.toSorted((a, b) => (a.usedAt ?? 0) - (b.usedAt ?? 0) || a.issuedAt - b.issuedAt)[0]
}

/** A token with a longer lifetime than this (ms, two weeks) needs a successor. A token with a shorter one ends as planned. */
const LASTING = 14 * 86_400_000

/**
 * The issued tokens that a person has to replace, the first to end first: tokens with a lifetime of more than two weeks, unless another
 * one with the same label ends later. A token without a label has no successor.
 */
export function unreplaced(issued: readonly IssuedGrant[]): readonly IssuedGrant[] {
  const latest = new Map<string, number>()
  for (const { label, expiresAt } of issued) latest.set(label, Math.max(latest.get(label) ?? 0, expiresAt))
  const isReplaced = ({ label, expiresAt }: IssuedGrant): boolean =>
    label !== '' && (latest.get(label) ?? 0) > expiresAt
  return issued
    .filter((grant) => grant.expiresAt - grant.issuedAt > LASTING && !isReplaced(grant))
    .toSorted((a, b) => a.expiresAt - b.expiresAt)
}

/** Counts and logs that the operator issued a token. Never logs the token itself. */
export function reportHandOut(
  { log, metrics }: Outlets,
  { label, name }: Handout,
  { grant, expiresAt }: HandedOut,
): void {
  metrics.tokensIssued(ISSUED)
  const whose = { ...(name === '' ? {} : { name }), ...(label === '' ? {} : { label }) }
  const expires = new Date(expiresAt).toISOString()
  log.warn({ grant, ...whose, expires }, 'token issued by the operator')
}
