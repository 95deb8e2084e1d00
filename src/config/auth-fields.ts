import { choice, either, type Field, type FieldOptions, optional, section, type ValueOf } from './field.ts'
import { accountName, cookieName, passwordSection, sessionSection, target } from './session-fields.ts'
import { integer, list, oneOf, parseBy, plainText } from './value-fields.ts'

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
