import type { GrantSummary, HandedOut, Handout, IssuedGrant, StateDependencies } from './state.ts'

/** The name of issued grants in `postern_tokens_issued_total`. */
export const ISSUED = 'issued'

/** In place of the address of a client: the operator gave no password, and which client will use the token is unknown. */
export const OPERATOR = 'operator'

/** The grants of these that were issued. */
export function issuedOf(grants: readonly GrantSummary[]): readonly IssuedGrant[] {
  return grants.flatMap((grant) => (grant.label === undefined ? [] : { ...grant, label: grant.label }))
}

/** The grant that was used longest ago. One that was not used since the start comes before the others, the oldest first. */
export function longestUnused(grants: readonly GrantSummary[]): GrantSummary | undefined {
  return grants.toSorted((a, b) => (a.usedAt ?? 0) - (b.usedAt ?? 0) || a.issuedAt - b.issuedAt)[0]
}

/** The shortest time for which a token is issued that needs a successor (ms): two weeks. A shorter one ends as planned. */
const LASTING = 14 * 86_400_000

/**
 * The tokens that somebody has to replace, the first to end first: issued for more than two weeks, and none with the same label lives longer.
 * Without a label, none is its successor.
 */
export function unreplaced(issued: readonly IssuedGrant[]): readonly IssuedGrant[] {
  const isReplaced = ({ label, expiresAt }: IssuedGrant): boolean =>
    label !== '' && issued.some((other) => other.label === label && other.expiresAt > expiresAt)
  return issued
    .filter((grant) => grant.expiresAt - grant.issuedAt > LASTING && !isReplaced(grant))
    .toSorted((a, b) => a.expiresAt - b.expiresAt)
}

/** Counts and logs that a token was issued: never the token itself. */
export function reportHandOut(
  { log, metrics }: Pick<StateDependencies, 'log' | 'metrics'>,
  { label, name }: Handout,
  { grant, expiresAt }: HandedOut,
): void {
  metrics.tokensIssued(ISSUED)
  const whose = { ...(name === '' ? {} : { name }), ...(label === '' ? {} : { label }) }
  const expires = new Date(expiresAt).toISOString()
  log.warn({ grant, ...whose, expires }, 'token issued by the operator')
}
