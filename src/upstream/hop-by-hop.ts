import { type Fields, fieldValues, listMembers } from '../http/fields.ts'

/** Fields that belong to one connection, never to the message (RFC 9110 §7.6.1), `Proxy-*` aside. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings',
  'proxy',
])

/**
 * Whether a field stays behind on its own connection: a known hop-by-hop one, or one that `Connection` names.
 * `proxy` is not a standard field, but CGI programs take it for their outgoing proxy.
 */
export function hopByHop(fields: Fields): (lowerName: string) => boolean {
  const connection = fieldValues(fields, 'connection')
  // By far the commonest: nothing, or what is named above.
  const plain = connection.length === 0 || (connection.length === 1 && connection[0] === 'keep-alive')
  const nominated = plain ? connection : listMembers(connection)
  return (name) =>
    HOP_BY_HOP.has(name) || (name.startsWith('proxy-') && name !== 'proxy-status') || nominated.includes(name)
}
