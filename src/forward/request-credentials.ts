import { type Fields, fieldValues, keepFields, namesIn, withoutBlanks } from '../http/fields.ts'

/** The header of a request with credentials in it: they replace `Authorization`, and go before the client's cookies. */
export function withCredentials(fields: Fields, own: Fields): string[] {
  if (own.length === 0) return [...fields]
  const session = fieldValues(own, 'cookie').join('; ')
  const replaced = namesIn(own)
  const merged = session === '' ? [] : ['Cookie', mergeCookies(fieldValues(fields, 'cookie'), session)]
  return [
    ...keepFields(fields, (name) => !replaced.has(name)),
    ...keepFields(own, (name) => name !== 'cookie'),
    ...merged,
  ]
}

/**
 * The session first and the client's own cookies behind it, untouched, less those by the same names: a client must
 * neither choose the session nor hide it behind a quote that it leaves open.
 */
export function mergeCookies(client: readonly string[], session: string): string {
  const names = new Set(session.split(';').map(nameOf))
  const others = client
    .flatMap((value) => value.split(';'))
    .map(withoutBlanks)
    .filter((pair) => pair !== '' && !names.has(nameOf(pair)))
  return [session, ...others].join('; ')
}

/** `trim` takes away more than blanks, such as 0xA0: a cookie that firmware could take for the session's goes, too. */
function nameOf(pair: string): string {
  return pair.split('=', 1)[0]?.trim() ?? ''
}
