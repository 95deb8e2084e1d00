import { isToken } from '../http/fields.ts'
import { targetProblem } from './address.ts'
import {
  choice,
  either,
  type Field,
  type FieldOptions,
  field,
  optional,
  section,
  type ValueOf,
  z,
} from './field.ts'
import { headerNameProblem } from './header-field.ts'
import { integer, list, oneOf, path, plainText, unless } from './value-fields.ts'

/** Names the file with the password of the account. */
const passwordSection = section({ file: path() })

/** The file that holds the password of the account. */
export type PasswordFile = ValueOf<typeof passwordSection>

const accountName = plainText('a user name', {
  problemOf: unless(
    (given) => ![...given].some((each) => each < ' ' || each === '\x7f' || each === ':'),
    'must not contain a colon, which ends the user name in credentials, or control characters',
  ),
})

const cookieName = plainText('the name of a cookie', {
  problemOf: unless(isToken, 'must be the name of a cookie (RFC 6265)'),
})

const headerName = plainText('the name of a header field', { problemOf: headerNameProblem })

/** A path, optionally with a query, as in a request line. */
function target(options: FieldOptions = {}): Field<string> {
  return plainText('a path that begins with /', { ...options, problemOf: targetProblem })
}

/** What Postern does when the device sets another session in its response to a client's request. */
const onChange = oneOf(['sign_in', 'follow'], { default: 'sign_in' })

const sessionSection = section({
  user: optional(accountName),
  password: optional(passwordSection),
  login: section({
    method: method({ default: 'POST' }),
    path: target(),
    json: optional(mapping(() => z.unknown())),
    form: optional(mapping(() => z.string({ error: 'must be text (in quotes if it looks like a number)' }))),
  }),
  token: choice({
    header: headerName,
    cookie: cookieName,
    json: plainText('a JSON Pointer such as /session/id', {
      problemOf: unless(
        /^(?:\/(?:[^~/]|~[01])*)+$/,
        'must be a JSON Pointer (RFC 6901), such as /session/id',
      ),
    }),
  }),
  send: section({
    header: optional(headerName),
    prefix: optional(
      plainText('printable ASCII text', {
        problemOf: unless(/^[!-~][ -~]*$/, 'must be printable ASCII text'),
      }),
    ),
    cookie: optional(cookieName),
  }),
  onChange,
  expired: field<readonly number[]>(
    () => z.array(integer(400, 499).schema(), { error: 'must be a list of statuses from 400 to 499' }),
    { default: [401], type: 'list of statuses, 400 to 499', textForm: 'yaml' },
  ),
  logout: optional(
    section({
      method: method({ default: 'DELETE' }),
      path: either(
        target(),
        section({ header: headerName }),
        'must be a path that begins with /, or {header: Location}',
      ),
    }),
  ),
})

const form = section({
  user: optional(accountName),
  password: optional(passwordSection),
  path: target({ default: '/login' }),
  loginPage: optional(target()),
  userField: fieldName({ default: 'username' }),
  passwordField: fieldName({ default: 'password' }),
  fields: list('texts `name=value`', 'must be text such as action=login', {
    default: [],
    problemOf: unless(/^[^=]+=/, 'must be text such as action=login'),
  }),
  sessionCookie: optional(cookieName),
  onChange,
  success: section({ status: optional(integer(200, 399)), location: optional(target()) }),
  checkPath: optional(target()),
})

const http = section({
  user: accountName,
  password: optional(passwordSection),
  checkPath: target({ default: '/' }),
})

export const authField = either(
  oneOf(['off']),
  choice({ basic: http, digest: http, form, session: sessionSection }),
  'must be off, or a mapping with one of basic, digest, form, session',
  {
    default: 'off',
    // A common mistake is to write the password itself here.
    secret: true,
  },
)

function fieldName(options: FieldOptions = {}): Field<string> {
  return plainText('the name of a form field', options)
}

export type UpstreamAuthConfig = ValueOf<typeof authField>

export type SessionConfig = ValueOf<typeof sessionSection>

/** The fields of a response that can carry the token of `upstream.auth.session`. */
export function tokenHeaders(auth: UpstreamAuthConfig): readonly string[] {
  if (auth === 'off' || !('session' in auth)) return []
  const { token, send } = auth.session
  const named = 'header' in token ? [token.header] : []
  return send.header === undefined ? named : [...named, send.header]
}

function method(options: FieldOptions = {}): Field<string> {
  return oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], options)
}

/** A mapping of the device's own names. */
function mapping<T>(member: () => z.ZodMiniType<T>): Field<Readonly<Record<string, T>>> {
  const build = () => z.record(z.string(), member(), { error: 'must be a mapping of names to values' })
  return field(build, { type: 'mapping of names to values', textForm: 'yaml', secret: true })
}
