import type { Revocation } from '../tokens/token-contract.ts'

/** What an operator can name: everything, the grants of one client, or one grant. */
export type OperatorRevocation = Exclude<Revocation, { readonly token: string }>

/** Undefined for anything that does not name exactly one of them. */
export function readRevocation(text: string): OperatorRevocation | undefined {
  const value = parse(text)
  if (value === null || typeof value !== 'object' || Object.keys(value).length !== 1) return undefined
  if ('all' in value && value.all === true) return { all: true }
  if ('client' in value && typeof value.client === 'string') return { client: value.client }
  if ('grant' in value && typeof value.grant === 'string') return { grant: value.grant }
  return undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
