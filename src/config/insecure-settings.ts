import { isLoopback, normalizeAddress } from '../http/ip.ts'
import { formatAddress } from '../system/listen-address.ts'
import { isLocal } from './address.ts'
import type { Config } from './schema.ts'
import { type NamedService, servicesOf } from './upstream-fields.ts'
import { areWide } from './wide-ranges.ts'

/** A setting that works and is not safe. */
export interface ConfigWarning {
  readonly key: string
  /** The file that it names, if that is at fault. */
  readonly file?: string
  readonly reason: string
  /** What follows from it, and what mends it, each as a clause. */
  readonly meaning: string
  readonly remedy: string
  /** Its line in the log; default: `insecure: ` and the meaning. */
  readonly message?: string
}

/** Something that `check` and the log warn of. */
export interface WarningRule {
  /** What it is, as an item of the list in docs/hardening.md. */
  readonly about: string
}

/** What `enforce: false` in an entry of `passwords` means, and what mends it. */
export const TRYING: Pick<ConfigWarning, 'meaning' | 'remedy'> = {
  meaning: 'requests outside its allow reach the device',
  remedy: 'remove enforce: false from its entry in passwords when the log shows no more would_refuse of it',
}

interface SettingRule extends WarningRule {
  readonly find: (config: Config) => readonly ConfigWarning[]
}

/** What `enforce: false` means, and what mends it. */
export const OBSERVING: Pick<ConfigWarning, 'meaning' | 'remedy'> = {
  meaning: 'requests without a token and past the limits reach the device',
  remedy: 'remove it when the log shows no more would_refuse',
}

const DAY = 86_400_000
/** Times (ms) above which `tokens.access_lifetime`, `refresh_lifetime` and `offline_grace` are warned of. */
const LONG = { access: 7 * DAY, refresh: 90 * DAY, offline: DAY }

/** Whether an entry of `listen.trusted_proxies` names another machine. */
const isElsewhere = (proxy: string): boolean => proxy !== 'unix' && !isLoopback(proxy.split('/')[0] ?? '')

/** Settings that a start accepts, and that give up protection. */
export const SETTING_RULES: readonly SettingRule[] = [
  {
    about:
      '`listen.tls: off` on an address that is not loopback, without a proxy on another machine in `listen.trusted_proxies`',
    find: ({ listen: { address, tls, trustedProxies } }) =>
      tls !== 'off' || trustedProxies.some(isElsewhere) || isLocal(address)
        ? []
        : [
            {
              key: 'listen.tls',
              reason:
                address.kind === 'fd'
                  ? `off, and ${formatAddress(address)} may be open to other machines`
                  : `off, and ${formatAddress(address)} is not on loopback`,
              meaning: 'passwords and tokens cross the network in cleartext',
              remedy: 'remove listen.tls, or name the proxy that encrypts in listen.trusted_proxies',
            },
          ],
  },
  {
    about: '`browser.login: on` without TLS: browsers on other machines cannot log in',
    find: ({ listen: { address, tls, trustedProxies }, browser }) =>
      browser.login === 'off' || tls !== 'off' || isLocal(address) || trustedProxies.length > 0
        ? []
        : [
            {
              key: 'browser.login',
              reason: `on without TLS, and ${formatAddress(address)} is not on loopback`,
              message: 'browsers on other machines cannot log in',
              meaning:
                'their login page has no form, because the password would cross the network in cleartext',
              remedy: 'remove listen.tls, or name the proxy that encrypts in listen.trusted_proxies',
            },
          ],
  },
  {
    about:
      '`listen.trusted_proxies` that holds as many addresses of the internet as an IPv4 /8 or an IPv6 /16, in however many ranges',
    find: ({ listen }) =>
      areWide(listen.trustedProxies)
        ? [
            {
              key: 'listen.trusted_proxies',
              reason: 'it holds a large part of the internet',
              meaning:
                'a client in it names any address as its own, so it passes every limit and listen.allow',
              remedy: 'list only the addresses of the proxies in front of Postern',
            },
          ]
        : [],
  },
  {
    about: '`cors.origins` with a `*` in it: it matches no page',
    find: ({ cors: { origins } }) =>
      [...origins]
        .filter((origin) => origin.includes('*'))
        .map((origin) => ({
          key: 'cors.origins',
          reason: `${origin} is no origin that a browser sends`,
          message: 'an origin in cors.origins matches no page',
          meaning: 'browsers keep the pages that it should match from the API',
          remedy: 'list each origin by itself',
        })),
  },
  {
    about: '`admin.address` on every address of the machine',
    find: ({ admin }) => {
      const inner = admin.address === 'off' ? undefined : admin.address
      if (inner?.kind !== 'tcp' || !['0.0.0.0', '::'].includes(normalizeAddress(inner.host) ?? '')) return []
      return [
        {
          key: 'admin.address',
          reason: `${formatAddress(inner)} is every address of this machine`,
          meaning: 'clients can read the metrics, too',
          remedy:
            'use 127.0.0.1 or an inner address, or let a firewall or a network policy close the port to clients',
        },
      ]
    },
  },
  {
    about: '`admin.password_file` without `admin.tls`, on an address that is not loopback',
    find: ({ admin: { address, tls, passwordFile } }) =>
      address === 'off' || passwordFile === undefined || tls === 'on' || isLocal(address)
        ? []
        : [
            {
              key: 'admin.tls',
              reason: `off, and ${formatAddress(address)} is not on loopback`,
              meaning: 'the password of the live page crosses the network in cleartext',
              remedy: 'set admin.tls: on, or put admin.address on loopback, behind SSH or a proxy with TLS',
            },
          ],
  },
  {
    about: '`enforce: false`',
    find: ({ enforce }) =>
      enforce
        ? []
        : [
            {
              key: 'enforce',
              reason: 'false',
              ...OBSERVING,
            },
          ],
  },
  {
    about: '`enforce: false` for a name of `passwords`, whose `allow` is then only tried',
    find: ({ passwords = [] }) =>
      passwords.flatMap(({ name, enforce }, index) =>
        enforce
          ? []
          : [
              {
                key: `passwords.${index}.enforce`,
                reason: `false, for ${name}`,
                ...TRYING,
                message: `the allow of ${name} is on trial: requests outside it reach the device`,
              },
            ],
      ),
  },
  {
    about: '`public_paths` with `/`, which is every path',
    find: ({ publicPaths }) =>
      publicPaths.includes('/')
        ? [
            {
              key: 'public_paths',
              reason: '/ is every path',
              meaning: 'every request reaches the device without a token',
              remedy: 'list only the paths that everyone may see, such as /login or /static/',
            },
          ]
        : [],
  },
  {
    about: '`limits.wrong_passwords: off`, which is the default, also behind the login page of browsers',
    find: ({ limits, browser }) =>
      limits.wrongPasswords === 'slow'
        ? []
        : [
            {
              key: 'limits.wrong_passwords',
              reason: browser.login === 'on' ? 'off, with a login page' : 'off',
              meaning: `each address may guess ${perMinute(limits.oauth)} passwords a minute`,
              remedy: 'set it to slow: after four wrong passwords, each further attempt of the client waits',
            },
          ],
  },
  {
    about:
      '`tokens.access_lifetime` above 7 days, `tokens.refresh_lifetime` above 90, and `tokens.offline_grace` above one with a shared store',
    find: ({ tokens }) => [
      ...(tokens.accessLifetime > LONG.access
        ? [longTime('access_lifetime', 'a stolen access token works for as long', '1h')]
        : []),
      ...(tokens.refreshLifetime > LONG.refresh
        ? [longTime('refresh_lifetime', 'a stolen refresh token logs in for as long', '7d')]
        : []),
      ...(typeof tokens.store !== 'string' && tokens.offlineGrace > LONG.offline
        ? [longTime('offline_grace', 'without the shared store, a revoked token works for as long', '1h')]
        : []),
    ],
  },
  {
    about: '`tls.insecure` towards an https device; worse with `tls.weak`',
    find: ({ upstream }) => servicesOf(upstream).flatMap(unchecked),
  },
  {
    about: '`upstream.share` with a path that looks like an action',
    find: ({ upstream }) => sharedActions({ path: ['upstream'], service: upstream }),
  },
]

/** The settings that give up protection, in the order of the rules. */
export function insecureSettings(config: Config): readonly ConfigWarning[] {
  return SETTING_RULES.flatMap(({ find }) => find(config))
}

function perMinute({ requests, window }: Config['limits']['oauth']): number {
  return Math.ceil((requests * 60_000) / window)
}

function longTime(name: string, meaning: string, shorter: string): ConfigWarning {
  const key = `tokens.${name}`
  return { key, reason: 'it is very long', meaning, remedy: `set a shorter time, such as ${shorter}` }
}

function unchecked({ path, service: { url, tls } }: NamedService): readonly ConfigWarning[] {
  if (!tls.insecure || !url.origin.startsWith('https:')) return []
  return [
    {
      key: [...path, 'tls', 'insecure'].join('.'),
      reason: tls.weak ? 'true, with weak: true' : 'true',
      meaning: `any program on the way to the device can pose as it, and read and change ${tls.weak ? 'everything, also by old ciphers' : 'everything'}`,
      remedy: 'set ca or pin instead; postern check prints the line to write',
    },
  ]
}

/** A word that names an action in `/reboot`, `/api/setParam` or `/relay-toggle`. */
const ACTION =
  /^(?:add|apply|clear|cmd|command|create|delete|disable|enable|erase|exec|execute|factory|flash|install|kill|login|logout|put|reboot|remove|rename|reset|restart|restore|run|save|send|set|shutdown|start|stop|submit|toggle|trigger|unlock|update|upgrade|upload|write)$/

function sharedActions({ path, service }: NamedService): ConfigWarning[] {
  return service.share.paths.filter(mayAct).map((shared) => ({
    key: [...path, 'share', 'paths'].join('.'),
    reason: shared === '/' ? '/ is every path, also those that act' : `${shared} looks like an action`,
    meaning: 'the device acts once for several clients that ask at the same time',
    remedy: 'list only paths that read; keep this one if it does',
    message: 'a path of upstream.share looks like an action',
  }))
}

function mayAct(path: string): boolean {
  const words = path.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z]+/)
  return path === '/' || words.some((word) => ACTION.test(word.toLowerCase()))
}
