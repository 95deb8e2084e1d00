import { type Fields, fieldValues, listMembers } from '../http/fields.ts'

/**
 * Whether a field belongs to one connection, never to the message (RFC 9110 §7.6.1). `proxy` is not a standard field,
 * but CGI programs take it for their outgoing proxy. Compared one by one: to look a name up in a `Set`, V8 first makes it
 * unique, which takes longer than all of these.
 */
export function isHopByHop(lowerName: string): boolean {
  switch (lowerName) {
    case 'connection':
    case 'keep-alive':
    case 'te':
    case 'trailer':
    case 'transfer-encoding':
    case 'upgrade':
    case 'expect':
    case 'http2-settings':
    case 'proxy':
      return true
    default:
      return lowerName.startsWith('proxy-') && lowerName !== 'proxy-status'
  }
}

const NONE: readonly string[] = []

/** What `Connection` names beside the above, in lower case: it stays behind as well. */
export function connectionOptions(fields: Fields): readonly string[] {
  const connection = fieldValues(fields, 'connection')
  // By far the commonest: nothing, or what is named above.
  const plain = connection.length === 0 || (connection.length === 1 && connection[0] === 'keep-alive')
  return plain ? NONE : listMembers(connection)
}
