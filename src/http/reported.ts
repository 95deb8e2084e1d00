import type { Client } from './admission.ts'
import type { RequestHead } from './exchange.ts'
import { fieldValues, listMembers } from './fields.ts'

/** A request, and how its client reached Postern. */
export interface Reported {
  readonly head: Pick<RequestHead, 'fields'>
  readonly client: Pick<Client, 'peerTrusted' | 'hops'>
}

/**
 * What the proxies in front say about the client in a field such as `X-Forwarded-Proto`; undefined without a trusted proxy, or without the
 * field. Each proxy either appends a member about its own peer, as it does in `X-Forwarded-For`, or writes the whole field. So the members
 * count from the right, one for each trusted proxy; a shorter list was written by a nearer one. The client itself may have written the
 * members before these.
 *
 * @param name in lower case
 */
export function reported({ head, client }: Reported, name: string): string | undefined {
  if (!client.peerTrusted) return undefined
  const members = listMembers(fieldValues(head.fields, name), 'kept')
  return members[Math.max(0, members.length - 1 - client.hops)]
}
