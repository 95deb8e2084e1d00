import { choice, type Explained, either, type Field, optional, section, type ValueOf } from './field.ts'
import { integer, list, oneOf, path, plainText } from './value-fields.ts'

const password = section('The password of that account.', {
  file: path({
    description:
      'A file with one line, the password itself. It is read at the start, and again for every login. To be left out beside `password.device`, where the password of the last grant is used.',
  }),
})

const form = section('A login form that gives session cookies.', {
  user: optional(user('The account to sign in with; left out where the form asks for a password only.')),
  password: optional(password),
  path: target({ initial: '/login', description: 'Where the form is sent to, by POST.' }),
  loginPage: optional(
    target({
      description:
        'The page to which the device redirects whoever is not signed in, if that is not `path`. Such a redirect, and every 401, makes the sidecar sign in anew.',
    }),
  ),
  userField: fieldName({ initial: 'username', description: 'The name of the form field for the user.' }),
  passwordField: fieldName({
    initial: 'password',
    description: 'The name of the form field for the password.',
  }),
  fields: list({
    initial: [],
    type: 'texts `name=value`',
    must: 'must be text such as action=login',
    parse: (given) =>
      /^[^=]+=/.test(given) ? { value: given } : { problem: 'must be text such as action=login' },
    format: (value) => value,
    description: 'What else the form sends, such as the value of its button. Never a secret.',
  }),
  sessionCookie: optional(
    plainText(
      'the name of a cookie',
      {
        description:
          'The cookie that makes the session. Left out, it is all that the login sets, and the first of them to expire ends the session.',
      },
      (given) =>
        /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/.test(given) ? undefined : 'must be the name of a cookie (RFC 6265)',
    ),
  ),
  success: section(
    'How to tell a successful login, beyond a status below 400, a session cookie, and no redirect back to the login page.',
    {
      status: optional(
        integer(200, 399, { description: 'The one status of the answer to a login that succeeded.' }),
      ),
      location: optional(
        target({ description: 'What the path of the redirect behind such a login begins with.' }),
      ),
    },
  ),
  checkPath: optional(
    target({
      description:
        'A path that the device gives to nobody who is not signed in. With it, a login only counts when its session opens that path: many devices set a cookie and answer 200 to a wrong password, too.',
    }),
  ),
})

export const authField = either(
  oneOf(['off'], { description: 'Whether to sign in.' }),
  choice('How to sign in.', {
    basic: http('Basic authentication (RFC 7617), in UTF-8.', 'Basic'),
    digest: http(
      'Digest authentication (RFC 7616) with MD5, SHA-256 or SHA-512-256, the strongest that the device offers.',
      'Digest',
    ),
    form,
  }),
  'must be off, or hold one of basic, digest, form',
  {
    initial: 'off',
    // Whoever gets this wrong has likely put the password itself here.
    secret: true,
    description:
      'How the sidecar signs in to a device that has a login of its own: `off`, or one of `basic`, `digest` and `form`. One login at a time; a request that the device refuses for want of one is repeated once. A password that the device refuses is not tried again for 30 seconds, doubled each time up to 16 minutes, unless its file holds another one by then. Requests without a token (`public_paths`, `enforce`) are never signed in. Where a form gives a session, clients never see its cookie.',
  },
)

function http(description: string, scheme: string) {
  return section(description, {
    user: user('The account to sign in with.'),
    password: optional(password),
    checkPath: target({
      initial: '/',
      description: `A path that the device answers cheaply, and with 401 and a ${scheme} challenge to whoever is not signed in. There the password is tried before any request carries it.`,
    }),
  })
}

function user(description: string): Field<string> {
  return plainText('a user name', { description }, (given) =>
    [...given].some((each) => each < ' ' || each === '\x7f' || each === ':')
      ? 'must not hold a colon, which ends the name in credentials, or control characters'
      : undefined,
  )
}

function fieldName(explained: Explained): Field<string> {
  return plainText('the name of a form field', explained)
}

/** A path and perhaps a query, as they stand in a request line. */
function target(explained: Explained): Field<string> {
  return plainText('a path that begins with /', explained, (given) =>
    /^\/[!-~]*$/.test(given) && !given.includes('#')
      ? undefined
      : 'must be a path that begins with / and holds no spaces',
  )
}

/** The file that holds a password. */
export type PasswordFile = ValueOf<typeof password>

/** How the sidecar signs in to the device. */
export type UpstreamAuthConfig = ValueOf<typeof authField>
