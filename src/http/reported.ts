import type { Client } from './admission.ts'
import type { RequestHead } from './exchange.ts'
import { fieldValues, listMembers } from './fields.ts'

/** The parts of a request that tell what its proxies report. */
export interface Reported {
  readonly head: Pick<RequestHead, 'fields'>
  readonly client: Pick<Client, 'peerTrusted' | 'hops'>
}

/**
 * The member about the client in a field such as `X-Forwarded-Proto`; undefined without a trusted proxy or without the field. Each proxy
 * appends a member about its own peer, as in `X-Forwarded-For`, or replaces the field. So members are counted from the right, one for each
 * trusted proxy. If the list is shorter, its first member is taken. Earlier members are not trusted: the client may have written them.
 *
 * @param name in lower case
 */
export function reported({ head, client }: Reported, name: string): string | undefined {
  if (!client.peerTrusted) return undefined
  const members = listMembers(fieldValues(head.fields, name), 'kept')
  return members[Math.max(0, members.length - 1 - client.hops)]
}
