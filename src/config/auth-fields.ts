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
const onChange = oneOf(['sign_in', 'follow'])

type OnChange = ValueOf<typeof onChange>

/** What only a session has. */
const session = section({
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

/** What only a login form has. */
const form = section({
  path: target({ default: '/login' }),
  loginPage: optional(target()),
  userField: fieldName({ default: 'username' }),
  passwordField: fieldName({ default: 'password' }),
  fields: list('texts `name=value`', 'must be text such as action=login', {
    default: [],
    problemOf: unless(/^[^=]+=/, 'must be text such as action=login'),
  }),
  sessionCookie: optional(cookieName),
})

const accountKeys = section({
  kind: oneOf(['basic', 'digest', 'form', 'session']),
  user: optional(accountName),
  password: optional(passwordSection),
  checkPath: optional(target()),
  onChange: optional(onChange),
  form: optional(form),
  session: optional(session),
})

/** What every kind of account may have: some devices have tokens but no accounts. */
interface AnyAccount {
  readonly user?: string
  readonly password?: PasswordFile
}

/** An account at the device, by the kind of its login. */
export type Account =
  | (AnyAccount & { readonly kind: 'basic' | 'digest'; readonly user: string; readonly checkPath: string })
  | (AnyAccount & {
      readonly kind: 'form'
      readonly checkPath?: string
      readonly onChange: OnChange
      readonly form: ValueOf<typeof form>
    })
  | (AnyAccount & {
      readonly kind: 'session'
      readonly onChange: OnChange
      readonly session: ValueOf<typeof session>
    })

/** Refuses keys of another kind, and requires those of its own. */
const account: Field<Account> = {
  ...accountKeys,
  initial: undefined,
  schema: () =>
    z.pipe(
      accountKeys.schema(),
      z.transform((given, { issues }) => {
        const { kind, user, password, checkPath, onChange = 'sign_in' } = given
        const must = (key: string, what: string) =>
          issues.push({ code: 'custom', message: `must ${what}`, path: [key], input: given })
        for (const key of ['form', 'session'] as const)
          if (given[key] !== undefined && key !== kind) must(key, `be left out with kind: ${kind}`)
        const common = { ...(user !== undefined && { user }), ...(password !== undefined && { password }) }
        switch (kind) {
          case 'basic':
          case 'digest':
            if (user === undefined) must('user', 'be a user name')
            if (given.onChange !== undefined)
              must('on_change', `be left out with kind: ${kind}, which has no session`)
            return { ...common, kind, user: user ?? '', checkPath: checkPath ?? '/' }
          case 'form': {
            const page = checkPath === undefined ? {} : { checkPath }
            return { ...common, ...page, kind, onChange, form: given.form ?? form.schema().parse({}) }
          }
          case 'session':
            if (checkPath !== undefined) must('check_path', 'be left out with kind: session')
            if (given.session !== undefined) return { ...common, kind, onChange, session: given.session }
            must('session', 'be a mapping with login, token and send')
            return z.NEVER
        }
      }),
    ),
}

export const authField = either(
  oneOf(['off']),
  account,
  'must be off, or a mapping with kind: basic, digest, form or session',
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

export type SessionAccount = Extract<Account, { readonly kind: 'session' }>

export type FormAccount = Extract<Account, { readonly kind: 'form' }>

/** The fields of a response that can carry the token of `upstream.auth.session`. */
export function tokenHeaders(auth: UpstreamAuthConfig): readonly string[] {
  if (auth === 'off' || auth.kind !== 'session') return []
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
