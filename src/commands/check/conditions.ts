import { formatUpstreamUrl, isLocal } from '../../config/address.ts'
import type { Config } from '../../config/schema.ts'
import { areDiscovered } from '../../config/store-fields.ts'
import { ownPair } from '../../config/tls-field.ts'
import { formatDuration, formatSize } from '../../config/units.ts'
import { type NamedService, servicesOf } from '../../config/upstream-fields.ts'
import { areWide } from '../../config/wide-ranges.ts'
import { isLoopback } from '../../http/ip.ts'
import { formatAddress, type ListenAddress } from '../../system/listen-address.ts'
import { counted } from '../columns.ts'
import type { Condition, Setting } from './condition.ts'
import { passwordSettings } from './password-settings.ts'

const DAY = 86_400_000
const HOUR = DAY / 24
const MINUTE = HOUR / 60

/** The conditions, by the configuration key that decides. */
export const CONDITIONS = {
  enforce: {
    wanted: 'true',
    cost: 'requests without a token and past the limits reach the device',
    settings: ({ enforce }) => [{ value: String(enforce), holds: enforce }],
  },
  'passwords.enforce': {
    wanted: 'true in every entry',
    cost: 'requests outside the allow of this name reach the device',
    settings: ({ passwords = [] }) =>
      passwords.map(({ name, enforce }, index) => ({
        key: `passwords.${index}.enforce`,
        value: `${enforce}, for ${name}`,
        holds: enforce,
      })),
  },
  passwords: {
    wanted: 'a name for each client, and an allow for each name but one',
    cost: 'every login may do everything, and the log does not tell the clients apart',
    settings: ({ passwords }) => {
      if (passwords === undefined) return [{ value: 'not set', holds: false }]
      const free = passwords.filter(({ allow }) => mayDoEverything(allow)).length
      const value = `${counted(passwords.length, 'name')}, ${free} without allow`
      return [{ value, holds: passwords.length > 1 && free <= 1 }]
    },
  },
  public_paths: {
    wanted: 'no path',
    cost: 'everyone who reaches Postern reads and writes these paths at the device without a token',
    settings: ({ publicPaths }) => [
      {
        value: listed(
          publicPaths.map((each) => (typeof each === 'string' ? each : `${each.path} (signed in)`)),
        ),
        holds: publicPaths.length === 0,
      },
    ],
  },
  'listen.tls': {
    wanted: 'auto, or a certificate',
    cost: 'passwords and tokens leave Postern in cleartext',
    settings: ({ listen: { tls } }) => [{ value: tlsShown(tls), holds: tls !== 'off' }],
  },
  'listen.tls.cert': {
    wanted: 'a certificate of your own, from an authority that the clients trust',
    cost: 'a client that does not know the self-signed certificate cannot tell Postern from an attacker',
    settings: ({ listen: { tls } }) => [{ value: tlsShown(tls), holds: ownPair(tls) !== undefined }],
  },
  'listen.trusted_proxies': {
    wanted: 'only the addresses of the proxies in front of Postern',
    cost: 'a client in these ranges names any address as its own, and so passes every limit',
    settings: ({ listen: { trustedProxies } }) => [
      { value: listed(trustedProxies), holds: !areWide(trustedProxies) },
    ],
  },
  'listen.allow': {
    wanted: 'the addresses that may connect, and no large part of the internet',
    cost: 'every address that reaches the port may try to log in',
    settings: ({ listen: { allow } }) => [
      { value: listed(allow), holds: allow.length > 0 && !areWide(allow) },
    ],
  },
  'admin.address': {
    wanted: 'off, an address on loopback, or a Unix socket',
    cost: 'other machines can read the metrics, and open the live page if it has a password',
    settings: ({ admin: { address } }) => [{ value: addressShown(address), holds: isPrivate(address) }],
  },
  'admin.tls': {
    wanted: 'on, unless admin.address stays on this machine',
    cost: 'the password of the live page and the metrics cross the network in cleartext',
    settings: ({ admin: { address, tls } }) => [{ value: tls, holds: tls === 'on' || isPrivate(address) }],
  },
  'admin.password_file': {
    wanted: 'a file, unless admin.address is off or a Unix socket',
    cost: 'every user and program of this machine can open the live page on loopback',
    settings: ({ admin: { address, passwordFile } }) => [
      {
        value: passwordFile ?? 'not set',
        holds: passwordFile !== undefined || address === 'off' || address.kind === 'unix',
      },
    ],
  },
  'upstream.url': {
    wanted: 'https, or an address that stays on this machine',
    cost: 'requests, responses and the login of upstream.auth cross the network to the device in cleartext',
    settings: (config) =>
      ofServices(config, 'url', ({ url }) => ({
        value: formatUpstreamUrl(url),
        holds: url.kind === 'unix' || url.protocol === 'https' || isLoopback(url.host),
      })),
  },
  'upstream.tls.insecure': {
    wanted: 'false',
    cost: 'any program on the way to the device can pose as it, and read and change everything',
    settings: (config) =>
      ofServices(config, 'tls.insecure', ({ tls: { insecure }, url }) =>
        isEncrypted(url) ? { value: String(insecure), holds: !insecure } : undefined,
      ),
  },
  'upstream.tls.weak': {
    wanted: 'false',
    cost: 'the connection to the device takes ciphers and signatures that are known to be weak',
    settings: (config) =>
      ofServices(config, 'tls.weak', ({ tls: { weak }, url }) =>
        isEncrypted(url) ? { value: String(weak), holds: !weak } : undefined,
      ),
  },
  'upstream.tls.min_version': {
    wanted: 'TLSv1.2 or TLSv1.3',
    cost: 'the connection to the device takes versions of TLS that RFC 8996 forbids',
    settings: (config) =>
      ofServices(config, 'tls.min_version', ({ tls: { minVersion }, url }) =>
        isEncrypted(url)
          ? { value: minVersion, holds: minVersion === 'TLSv1.2' || minVersion === 'TLSv1.3' }
          : undefined,
      ),
  },
  'upstream.max_body': {
    wanted: 'the longest body that the device needs',
    cost: 'a client with a token sends the device a body of any length',
    settings: (config) =>
      ofServices(config, 'max_body', ({ maxBody }) => ({
        value: maxBody === 'off' ? 'off' : formatSize(maxBody),
        holds: maxBody !== 'off',
      })),
  },
  'password.file': {
    wanted: 'a hash of postern hash-password in every password file',
    cost: 'a reader of the file, or of a backup of it, has the password or guesses it',
    settings: passwordSettings,
  },
  'limits.api.requests': {
    wanted: 'a number that the device can answer',
    cost: 'one client can send the device as many requests as it likes',
    settings: ({ limits: { api }, passwords = [], browser }) => [
      limitSetting(api),
      ...passwords.flatMap(({ limit }, index) =>
        limit === undefined ? [] : [{ key: `passwords.${index}.limit.requests`, ...limitSetting(limit) }],
      ),
      ...(browser.login === 'off' ? [] : [{ key: 'browser.limit.requests', ...limitSetting(browser.limit) }]),
    ],
  },
  'limits.oauth.requests': {
    wanted: 'at most 60 in a window, and 60 a minute',
    cost: 'one address can guess many passwords in a short time',
    settings: ({ limits: { oauth } }) => [
      // A window of a day does not spread what it admits.
      { value: limitShown(oauth), holds: oauth.requests <= 60 && perSecond(oauth) <= 1 },
    ],
  },
  'limits.wrong_passwords': {
    wanted: 'slow',
    cost: 'only the limit on /oauth/token bounds how many passwords an address may guess',
    settings: ({ limits: { wrongPasswords } }) => [
      { value: wrongPasswords, holds: wrongPasswords === 'slow' },
    ],
  },
  'limits.store': {
    wanted: 'shared, if tokens.store is a shared store',
    cost: 'a client of several sidecars gets the limit of each',
    settings: ({ limits: { store }, tokens }) =>
      typeof tokens.store === 'string' ? [] : [{ value: store, holds: store === 'shared' }],
  },
  'tokens.store': {
    wanted: 'file, memory, or a shared store over TLS or on this machine',
    cost: 'the password of the shared store and what it holds cross the network in cleartext',
    settings: ({ tokens: { store } }) => [
      typeof store === 'string'
        ? { value: store, holds: true }
        : {
            value: `a shared store, ${store.tls ? 'over TLS' : 'without TLS'}`,
            holds: store.tls || (!areDiscovered(store) && store.nodes.every(({ host }) => isLoopback(host))),
          },
    ],
  },
  'store.tls.insecure': {
    wanted: 'false',
    cost: 'any program on the way to the shared store can pose as it, and admit tokens of its own',
    settings: ({ tokens, store }) =>
      typeof tokens.store === 'string' || !tokens.store.tls
        ? []
        : [{ value: String(store.tls.insecure), holds: !store.tls.insecure }],
  },
  'tokens.access_lifetime': {
    wanted: 'at most 1h',
    cost: 'a stolen access token works for as long',
    settings: ({ tokens: { accessLifetime } }) => [
      { value: formatDuration(accessLifetime), holds: accessLifetime <= HOUR },
    ],
  },
  'tokens.refresh_lifetime': {
    wanted: 'at most 30d',
    cost: 'a stolen refresh token logs in for as long',
    settings: ({ tokens: { refreshLifetime } }) => [
      { value: formatDuration(refreshLifetime), holds: refreshLifetime <= 30 * DAY },
    ],
  },
  'tokens.grant_lifetime': {
    wanted: 'a time, if tokens.rotate_refresh is true',
    cost: 'a login that is refreshed in time never ends',
    settings: ({ tokens: { grantLifetime, rotateRefresh } }) => [
      {
        value: grantLifetime === 'off' ? 'off' : formatDuration(grantLifetime),
        holds: grantLifetime !== 'off' || !rotateRefresh,
      },
    ],
  },
  'tokens.rotate_refresh': {
    wanted: 'true',
    cost: 'the use of a stolen refresh token is not noticed',
    settings: ({ tokens: { rotateRefresh } }) => [{ value: String(rotateRefresh), holds: rotateRefresh }],
  },
  'tokens.refresh_grace': {
    wanted: 'at most 1m, if tokens.rotate_refresh is true',
    cost: 'for as long, a thief gets the same new tokens with a refresh token that was used, and nobody notices',
    settings: ({ tokens: { refreshGrace, rotateRefresh } }) =>
      rotateRefresh ? [{ value: formatDuration(refreshGrace), holds: refreshGrace <= MINUTE }] : [],
  },
  'tokens.offline_grace': {
    wanted: 'at most 1h',
    cost: 'without the shared store, a revoked token works for as long',
    settings: ({ tokens: { offlineGrace, store } }) =>
      typeof store === 'string' ? [] : [{ value: formatDuration(offlineGrace), holds: offlineGrace <= HOUR }],
  },
  'oauth.revocation_path': {
    wanted: 'a path, such as /oauth/revoke',
    cost: 'a client cannot end its own login',
    settings: ({ oauth: { revocationPath } }) => [{ value: revocationPath, holds: revocationPath !== 'off' }],
  },
  'browser.idle': {
    wanted: 'at most 12h',
    cost: 'a browser that somebody left open stays logged in for as long',
    settings: ({ browser: { idle, login } }) =>
      login === 'off' ? [] : [{ value: formatDuration(idle), holds: idle <= 12 * HOUR }],
  },
  'browser.hsts': {
    wanted: 'at least 365d',
    cost: 'a browser opens this host over cleartext, too, where an attacker can answer',
    settings: ({ browser: { hsts } }) => [
      { value: hsts === 'off' ? 'off' : formatDuration(hsts), holds: hsts !== 'off' && hsts >= 365 * DAY },
    ],
  },
  'cors.origins': {
    wanted: 'none, or only origins with https',
    cost: 'an attacker on the way to such a page can change its script, which then uses the token',
    settings: ({ cors: { origins } }) => [
      { value: listed(origins), holds: origins.every((each) => each.startsWith('https:')) },
    ],
  },
  'log.level': {
    wanted: 'info, debug or trace',
    cost: 'logins, revocations and refusals leave no line in the log',
    settings: ({ log: { level } }) => [{ value: level, holds: ['info', 'debug', 'trace'].includes(level) }],
  },
  'log.access': {
    wanted: 'true',
    cost: 'requests leave no line in the log; with changes, requests that only read leave none',
    settings: ({ log: { access } }) => [{ value: String(access), holds: access === true }],
  },
  'log.format': {
    wanted: 'json or auto',
    cost: 'a program that collects the log cannot rely on its form',
    settings: ({ log: { format } }) => [{ value: format, holds: format !== 'pretty' }],
  },
  'tokens.issued': {
    wanted: '0',
    cost: 'a client that cannot log in holds one token for months, like a fixed key',
    settings: ({ tokens: { issued } }) => [{ value: String(issued), holds: issued === 0 }],
  },
  'store.prefix': {
    wanted: 'a prefix of this device alone, not the default, if tokens.store is a shared store',
    cost: 'a token of another device at the same store works here, too',
    settings: ({ tokens, store: { prefix } }) =>
      typeof tokens.store === 'string' ? [] : [{ value: prefix, holds: prefix !== 'postern' }],
  },
} as const satisfies Readonly<Record<string, Condition>>

/** The key of a condition. */
export type ConditionKey = keyof typeof CONDITIONS

/** Requests a second that no device answers: more is no limit. */
const LIFTED = 10_000

interface Limit {
  readonly requests: number
  readonly window: number
}

function perSecond({ requests, window }: Limit): number {
  return (requests * 1000) / window
}

function limitSetting(limit: Limit): Setting {
  return { value: limitShown(limit), holds: perSecond(limit) < LIFTED }
}

function limitShown({ requests, window }: Limit): string {
  return `${requests} in ${formatDuration(window)}`
}

function listed(texts: readonly string[]): string {
  return texts.length === 0 ? 'none' : texts.join(', ')
}

function tlsShown(tls: Config['listen']['tls']): string {
  return ownPair(tls)?.cert ?? (typeof tls === 'string' ? tls : `self-signed, for ${listed(namesOf(tls))}`)
}

function namesOf(tls: Exclude<Config['listen']['tls'], string>): readonly string[] {
  return 'names' in tls ? tls.names : []
}

function addressShown(address: 'off' | ListenAddress): string {
  return address === 'off' ? 'off' : formatAddress(address)
}

function isPrivate(address: 'off' | ListenAddress): boolean {
  return address === 'off' || isLocal(address)
}

type Allow = NonNullable<Config['passwords']>[number]['allow']

/** Whether an `allow` leaves nothing out, but perhaps WebSockets. */
function mayDoEverything(allow: Allow): boolean {
  return (
    allow === undefined ||
    (allow !== 'read' &&
      allow.some(({ methods, paths }) => methods === undefined && (paths?.includes('/') ?? true)))
  )
}

function isEncrypted(url: NamedService['service']['url']): boolean {
  return url.kind === 'tcp' && url.protocol === 'https'
}

/** The setting of each service of the device; none where the key has no effect. */
function ofServices(
  { upstream }: Config,
  name: string,
  settingOf: (service: NamedService['service']) => Omit<Setting, 'key'> | undefined,
): readonly Setting[] {
  return servicesOf(upstream).flatMap(({ path, service }) => {
    const setting = settingOf(service)
    return setting === undefined ? [] : [{ key: [...path, name].join('.'), ...setting }]
  })
}
