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
import { integer, list, oneOf, parseBy, path, plainText } from './value-fields.ts'

/** The keys that several ways to sign in share. */
const passwordSection = section('The password of that account.', {
  file: path().describe(
    'A file with one line, the password itself. Read at the start, and again for every login. Leave it out with `password.device`, which uses the password of the last grant.',
  ),
})

/** The file that holds a password. */
export type PasswordFile = ValueOf<typeof passwordSection>

function accountName(description: string): Field<string> {
  return plainText('a user name', {
    problemOf: (given) =>
      [...given].some((each) => each < ' ' || each === '\x7f' || each === ':')
        ? 'must not contain a colon, which ends the user name in credentials, or control characters'
        : undefined,
  }).describe(description)
}

function cookieName(description: string): Field<string> {
  const problemOf = (given: string) =>
    isToken(given) ? undefined : 'must be the name of a cookie (RFC 6265)'
  return plainText('the name of a cookie', { problemOf }).describe(description)
}

/** A path, optionally with a query, as in a request line. */
function target(options: FieldOptions = {}): Field<string> {
  return plainText('a path that begins with /', { ...options, problemOf: targetProblem })
}

const sessionSection = section(
  "A session with a token of the device's own, as management controllers (Redfish), transmission and many router APIs have it: the response to a login holds a token, which later requests carry.",
  {
    user: optional(accountName('The account to sign in with, for `$user` in the login.')),
    password: optional(passwordSection),
    login: section('The request that opens a session.', {
      method: method({ default: 'POST' }).describe('The method of the login.'),
      path: target().describe('The path of the login, such as `/redfish/v1/SessionService/Sessions`.'),
      json: optional(mapping(z.unknown())).describe(
        'The body of the login, sent as JSON: `{UserName: $user, Password: $password}`. In its texts `$user` and `$password` stand for the account. Must not contain a secret itself.',
      ),
      form: optional(
        mapping(z.string({ error: 'must be text (in quotes if it looks like a number)' })),
      ).describe(
        'The body of the login, sent as a form: `{username: $user, password: $password}`; in place of `json`. Must not contain a secret itself.',
      ),
    }),
    token: choice('Where the response to the login has the token.', {
      header: headerName('The field that has the token, such as `X-Auth-Token`.'),
      cookie: cookieName('The cookie that has the token.'),
      json: plainText('a JSON Pointer such as /session/id', {
        problemOf: (given) =>
          /^(?:\/(?:[^~/]|~[01])*)+$/.test(given)
            ? undefined
            : 'must be a JSON Pointer (RFC 6901), such as /session/id',
      }).describe('A JSON Pointer (RFC 6901) to the token in the body, such as `/session/id`.'),
    }),
    send: section('How requests carry the token, in place of what the client sends there.', {
      header: optional(headerName('The field for the token, such as `X-Auth-Token` or `Authorization`.')),
      prefix: optional(
        plainText('printable ASCII text', {
          problemOf: (given) => (/^[!-~][ -~]*$/.test(given) ? undefined : 'must be printable ASCII text'),
        }),
      ).describe('Text before the token in that field, such as `"Bearer "`.'),
      cookie: optional(cookieName('The cookie for the token; in place of `header`.')),
    }),
    expired: field<readonly number[]>(
      z.array(integer(400, 499).bare, {
        error: 'must be a list of statuses from 400 to 499',
      }),
      { default: [401], type: 'list of statuses, 400 to 499', textForm: 'yaml' },
    ).describe(
      'The statuses that mean: sign in (again). Use only statuses with which the device does not act on a request, because the request is repeated, whatever its method.',
    ),
    logout: optional(
      section(
        'The request that ends a session: when the sidecar stops, and before the next login. Set it if the device allows few sessions.',
        {
          method: method({ default: 'DELETE' }).describe('The method of the logout.'),
          path: either(
            target().describe('The path of the logout.'),
            section('A field of the response to the login that has the path.', {
              header: headerName('The field, such as `Location`.'),
            }),
            'must be a path that begins with /, or {header: Location}',
          ).describe(
            "The path of the logout, or `{header: Location}`: the field of the response to the login that has it. An address that is not the device's own is not used.",
          ),
        },
      ),
    ),
  },
)

const form = section('A login form that sets session cookies.', {
  user: optional(
    accountName('The account to sign in with. Leave it out if the form asks for a password only.'),
  ),
  password: optional(passwordSection),
  path: target({ default: '/login' }).describe('The path to which the form is sent, by POST.'),
  loginPage: optional(target()).describe(
    'The page to which the device redirects requests without a session, if it is not `path`. Such a redirect, and every 401, makes the sidecar sign in again.',
  ),
  userField: fieldName({ default: 'username' }).describe('The name of the form field for the user.'),
  passwordField: fieldName({ default: 'password' }).describe('The name of the form field for the password.'),
  fields: list({
    default: [],
    type: 'texts `name=value`',
    must: 'must be text such as action=login',
    parse: parseBy((given) => (/^[^=]+=/.test(given) ? undefined : 'must be text such as action=login')),
  }).describe('Further form fields, such as the value of the submit button. Must not contain a secret.'),
  sessionCookie: optional(
    cookieName(
      'The session cookie. If it is left out, all cookies of the login belong to the session, which ends when the first of them expires.',
    ),
  ),
  success: section(
    'Further conditions for a login to count as successful. These hold in any case: a status below 400, a session cookie, and no redirect back to the login page.',
    {
      status: optional(integer(200, 399)).describe('The status of the response to a successful login.'),
      location: optional(target()).describe(
        'The beginning of the path to which the device redirects after a successful login.',
      ),
    },
  ),
  checkPath: optional(target()).describe(
    'A path that needs a login. If it is set, a login succeeds only when its session can open this path: many devices respond to a wrong password with 200 and a cookie, too.',
  ),
})

export const authField = either(
  oneOf(['off']).describe('Whether to sign in.'),
  choice('How to sign in.', {
    basic: http('Basic authentication (RFC 7617), in UTF-8.', 'Basic'),
    digest: http(
      'Digest authentication (RFC 7616) with MD5, SHA-256 or SHA-512-256, the strongest that the device offers.',
      'Digest',
    ),
    form,
    session: sessionSection,
  }),
  'must be off, or a mapping with one of basic, digest, form, session',
  {
    default: 'off',
    // A common mistake is to write the password itself here.
    secret: true,
  },
).describe(
  'How the sidecar signs in to a device that has its own login: `off`, or one of `basic`, `digest`, `form` and `session`. The sidecar never sends two logins at once. A request that the device refuses because it needs a login is repeated once. A refused password is not tried again for 30 seconds, doubled each time up to 16 minutes. It is tried earlier if the file then has another password. The sidecar does not sign in requests without a token (`enforce`, and `public_paths` without `signed_in`). Clients never see the cookie of a form login or the token of a session.',
)

function http(description: string, scheme: string) {
  return section(description, {
    user: accountName('The account to sign in with.'),
    password: optional(passwordSection),
    checkPath: target({ default: '/' }).describe(
      `A path that costs the device little and that responds with 401 and a ${scheme} challenge without credentials. The sidecar tries the password there before it sends it with any request.`,
    ),
  })
}

function fieldName(options: FieldOptions = {}): Field<string> {
  return plainText('the name of a form field', options)
}

export type UpstreamAuthConfig = ValueOf<typeof authField>

export type SessionConfig = ValueOf<typeof sessionSection>

/** The rules between the keys of a session, each as in `config/conflicts.ts`. The keys are relative to the service. */
export function sessionRules({
  user,
  password,
  login: { json, form },
  send: { header, prefix, cookie },
}: SessionConfig): readonly (readonly [isBroken: boolean, key: string, message: string])[] {
  const body = JSON.stringify([json, form])
  const one = 'must have exactly one of header, cookie'
  const twice = 'must not be set together with json; keep one of the two'
  const noUser = user === undefined && /\$user\b/.test(body)
  const noPassword = password === undefined && /\$password\b/.test(body)
  return [
    [json !== undefined && form !== undefined, 'auth.session.login.form', twice],
    [(header === undefined) === (cookie === undefined), 'auth.session.send', one],
    [
      prefix !== undefined && header === undefined,
      'auth.session.send.prefix',
      'must be left out without header',
    ],
    [noUser, 'auth.session.user', 'must be a user name: the login contains $user'],
    [noPassword, 'auth.session.password.file', 'must be a path: the login contains $password'],
  ]
}

function headerName(description: string): Field<string> {
  return plainText('the name of a header field', { problemOf: headerNameProblem }).describe(description)
}

function method(options: FieldOptions = {}): Field<string> {
  return oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], options)
}

/** A mapping of the device's own names. */
function mapping<T>(member: z.ZodMiniType<T>): Field<Readonly<Record<string, T>>> {
  const schema = z.record(z.string(), member, { error: 'must be a mapping of names to values' })
  return field(schema, { type: 'mapping of names to values', textForm: 'yaml', secret: true })
}
