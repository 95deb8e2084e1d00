import { ALWAYS, section, type ValueOf } from './field.ts'
import { adminField, listenField } from './listen-fields.ts'
import { limitsField, oauthField, passwordField, tokensField } from './policy-fields.ts'
import { upstreamField } from './upstream-fields.ts'
import { duration, flag, oneOf, path, plainText, requestPaths } from './value-fields.ts'

const logField = section('What is written to standard output.', {
  level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    initial: 'info',
    live: ALWAYS,
    description: 'The least important line that is still written.',
  }),
  format: oneOf(['auto', 'json', 'pretty'], {
    initial: 'auto',
    description:
      '`json` writes one object a line, `pretty` lines for people; `auto` is `pretty` on a terminal.',
  }),
  access: flag({ initial: true, live: ALWAYS, description: 'Write one line for every request.' }),
})

/** The whole configuration: the types, the errors, the JSON Schema and the reference page all come from here. */
export const schema = section('The configuration of Postern.', {
  listen: listenField,
  admin: adminField,
  upstream: upstreamField,
  password: passwordField,
  tokens: tokensField,
  limits: limitsField,
  oauth: oauthField,
  publicPaths: requestPaths({
    initial: [],
    live: ALWAYS,
    description:
      'Paths that need no token, such as a login page: exactly this path, or with a slash at the end everything below it. Compared byte for byte with the path that the device will see; one with dot segments, empty segments, backslashes or encoded slashes is never public. The limits count these requests as well.',
  }),
  enforce: flag({
    initial: true,
    live: ALWAYS,
    description:
      '`false` only observes: what would be refused for its token or its rate is forwarded, counted, and logged as `would_refuse`. `/oauth/token` and malformed requests are refused all the same.',
  }),
  stateDir: path({
    initial: './state',
    description:
      'The directory for what has to survive a restart: tokens and the self-signed certificate. When it is not set, `STATE_DIRECTORY` is used, which systemd sets.',
  }),
  realm: plainText(
    'text without quotes, backslashes or control characters',
    { initial: 'device', live: ALWAYS, description: 'The realm named to clients in `WWW-Authenticate`.' },
    // It stands in a quoted-string, and whoever reads it there need not know how to unescape.
    (given) =>
      /^[ !#-[\]-~]+$/.test(given) ? undefined : 'must be ASCII without ", \\ or control characters',
  ),
  statusCodes: oneOf(['contract', 'http'], {
    initial: 'contract',
    live: ALWAYS,
    description:
      "The statuses of the sidecar's own answers: `contract` keeps to 200, 400, 401, 429 and 500; `http` uses the precise ones (405, 408, 413, 415, 417, 431; 502 for a device that cannot be reached or answers wrongly, 503 where too many requests wait, 504 for a device that takes too long).",
  }),
  log: logField,
  shutdownGrace: duration(
    { least: '0s', most: '1h' },
    {
      initial: '10s',
      live: ALWAYS,
      description: 'How long running requests may take to finish when the sidecar is told to stop.',
    },
  ),
})

/** The configuration, complete: every default filled in, every duration in milliseconds, every size in bytes. */
export type Config = ValueOf<typeof schema>
