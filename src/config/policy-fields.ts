import { ALWAYS, choice, field, section, z } from './field.ts'
import { duration, flag, integer, oneOf, path, plainText } from './value-fields.ts'

export const passwordField = choice(
  'Where the device password comes from; exactly one of these. The file is watched: when the password changes, every token is invalid at once.',
  {
    file: path({ description: 'A file with one line, the password or a hash of it.' }),
    htpasswd: entry('an htpasswd file'),
    shadow: entry('a shadow file, as in `/etc/shadow`'),
    device: field(z.literal(true, { error: 'must be true' }), {
      type: '`true`',
      textForm: 'yaml',
      description:
        'Where no file can be reached: the password of every grant is tried by signing in to the device, as `upstream.auth` says, and the last one that was right, kept in memory only, signs the forwarded requests in. A password that the device took before and then refuses has changed. After a restart none is known, and what restored tokens ask for reaches the device without credentials until the next grant; if that has another password, those tokens are revoked first. Wrong grants are wrong logins at the device, which may lock the account for them: see `limits.oauth`.',
    }),
  },
)

export const tokensField = section('Access and refresh tokens.', {
  store: oneOf(
    ['file', 'memory'],
    {
      initial: 'file',
      // An operator may have given the URL of a shared store, with its password.
      secret: true,
      description:
        '`file` keeps tokens in `state_dir`, across restarts; `memory` forgets them at a restart. A store that several sidecars share (`valkey://`, `redis://`) is not supported yet.',
    },
    'must be file or memory; a shared store, such as valkey:// or redis://, is not supported yet',
  ),
  capacity: integer(2, 10_000_000, {
    initial: 10_000,
    live: ALWAYS,
    description: 'The most tokens kept. Past it, those longest unused are forgotten first.',
  }),
  accessLifetime: duration(
    { least: '1s', most: '365d', wholeSeconds: true },
    { initial: '1h', live: ALWAYS, description: 'How long an access token is valid.' },
  ),
  refreshLifetime: duration(
    { least: '1s', most: '3650d', wholeSeconds: true },
    {
      initial: '7d',
      live: ALWAYS,
      description: 'How long a refresh token is valid; not shorter than `access_lifetime`.',
    },
  ),
  rotateRefresh: flag({
    initial: false,
    live: ALWAYS,
    description:
      'Give a new refresh token with every refresh, as OAuth 2.1 has it, and take the use of a spent one for theft: that revokes the whole grant.',
  }),
  refreshGrace: duration(
    { least: '0s', most: '1h' },
    {
      initial: '10s',
      live: ALWAYS,
      description:
        'With `rotate_refresh`: how long a retry with the spent refresh token gets the same answer again.',
    },
  ),
})

export const limitsField = section('How often clients may ask.', {
  api: limit(60, 'everything except `/oauth/token`'),
  oauth: limit(30, '`/oauth/token`'),
  maxKeys: integer(1, 10_000_000, {
    initial: 100_000,
    description:
      'The most windows kept at once. Past it, newcomers share one window; those that are being counted stay as they are.',
  }),
  ietfHeaders: flag({
    initial: false,
    live: ALWAYS,
    description: 'Send `RateLimit` and `RateLimit-Policy` as well, beside the `X-RateLimit-*` fields.',
  }),
})

export const oauthField = section('What is served beside `/oauth/token`.', {
  revocationPath: plainText(
    '`off` or a path',
    {
      initial: 'off',
      live: ALWAYS,
      description:
        'Where clients may revoke a token, and with it everything given for the same login (RFC 7009), such as `/oauth/revoke`. Requests there count as those to `/oauth/token` do.',
    },
    (given) =>
      given === 'off' || (/^\/[\w./-]+$/.test(given) && given !== '/oauth/token')
        ? undefined
        : 'must be off, or a path of its own such as /oauth/revoke',
  ),
})

function entry(file: string) {
  return section(`The entry of one user in ${file}.`, {
    file: path({ description: `The path of ${file}.` }),
    user: plainText('a user name', { description: 'The user whose entry counts.' }, (given) =>
      given.includes(':') ? 'must not hold a colon, which ends the name in such a file' : undefined,
    ),
  })
}

function limit(requests: number, what: string) {
  return section(`The limit on ${what}.`, {
    requests: integer(1, 1_000_000_000, {
      initial: requests,
      live: ALWAYS,
      description: `How many requests pass in one window, on ${what}.`,
    }),
    window: duration(
      { least: '1s', most: '1d', wholeSeconds: true },
      {
        initial: '60s',
        live: ALWAYS,
        description: 'How long a window stays open after the first request in it.',
      },
    ),
    per: oneOf(['client', 'grant', 'device'], {
      initial: 'client',
      live: ALWAYS,
      description:
        'Who shares a window: `client`, one per client address (an IPv6 client by its /64); `grant`, one per login; `device`, one for everybody.',
    }),
  })
}
