import { isToken } from '../http/fields.ts'
import { type Field, type FieldOptions, section, type ValueOf } from './field.ts'
import { path, plainText } from './value-fields.ts'

/** The keys that several ways to sign in share. */
export const passwordSection = section('The password of that account.', {
  file: path({
    description:
      'A file with one line, the password itself. Read at the start, and again for every login. Leave it out with `password.device`, which uses the password of the last grant.',
  }),
})

/** The file that holds a password. */
export type PasswordFile = ValueOf<typeof passwordSection>

export function accountName(description: string): Field<string> {
  return plainText('a user name', { description }, (given) =>
    [...given].some((each) => each < ' ' || each === '\x7f' || each === ':')
      ? 'must not contain a colon, which ends the user name in credentials, or control characters'
      : undefined,
  )
}

export function cookieName(description: string): Field<string> {
  return plainText('the name of a cookie', { description }, (given) =>
    isToken(given) ? undefined : 'must be the name of a cookie (RFC 6265)',
  )
}

/** A path, optionally with a query, as in a request line. */
export function target(options: FieldOptions): Field<string> {
  return plainText('a path that begins with /', options, (given) =>
    /^\/[!-~]*$/.test(given) && !given.includes('#')
      ? undefined
      : 'must be a path that begins with / and contains no spaces',
  )
}
