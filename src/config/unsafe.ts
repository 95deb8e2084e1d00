import { isLoopback, normalizeAddress } from '../http/ip.ts'
import { formatAddress, type ListenAddress } from '../system/listen-address.ts'
import type { OtherWriter } from '../system/other-writers.ts'
import { shellWord } from '../system/text.ts'
import { isLocal, UNSET_ADDRESS } from './address.ts'
import type { NamedFile } from './files.ts'
import type { Config } from './schema.ts'
import { servicesOf } from './upstream-fields.ts'
import { areWide } from './wide-ranges.ts'

/** A setting that works but is not safe, or whose file is not safe. */
export interface UnsafeSetting {
  readonly key: string
  /** The file that the key names, if the file is the problem. */
  readonly file?: string
  readonly reason: string
  /** The consequence, as a clause. */
  readonly meaning: string
  /** What to do, as a clause. */
  readonly remedy: string
  /** The message of its log line; default: `insecure: ` and the meaning. */
  readonly message?: string
}

/** A file that has a secret or that Postern trusts. No field quotes the secret. */
export interface FileFacts extends NamedFile {
  /** Of a file with a secret; 0 if it is no file or cannot be read. */
  readonly mode: number
  /** Who else can replace it. */
  readonly writer?: OtherWriter | undefined
  /** It is the socket of the password hook. */
  readonly isSocket?: boolean
  /** Set for a password that clients or viewers log in with. */
  readonly password?: {
    /** The user whose line it is, in an htpasswd or shadow file. */
    readonly user?: string | undefined
    readonly isPlain: boolean
    /** Postern also signs in to the device with this file, so it cannot hold a hash. */
    readonly isSent: boolean
    /** In the words of `password/strength.ts`. */
    readonly weakness?: string | undefined
    readonly cheapHash?: string | undefined
    readonly mistakenFor?: string | undefined
    readonly hasOuterBlank: boolean
  }
}

interface Row extends Pick<UnsafeSetting, 'key' | 'meaning' | 'message'> {
  /** The safe value. docs/hardening.md shows it with the key and the meaning. */
  readonly wanted: string
}

/**
 * A row that the configuration alone decides. `when` returns a finding for each reason. A finding may have its own message, and the key of
 * a route or of an entry.
 */
interface SettingRow extends Row {
  readonly remedy: string
  readonly when: (config: Config) => readonly (Pick<UnsafeSetting, 'reason'> & Partial<UnsafeSetting>)[]
}

/** A row for each file with a secret or that is trusted. `when` returns the reason. The key of the finding is the key that names the file. */
interface FileRow extends Row {
  readonly remedy: (facts: FileFacts) => string
  readonly when: (facts: FileFacts) => string | undefined
}

/**
 * Whether other machines may send passwords to the public listener in cleartext. A trusted proxy on this machine is no protection, because
 * other machines can also connect to the address itself. A trusted proxy on another machine is taken as protection.
 */
function isInCleartext({ listen: { address, tls, trustedProxies } }: Config): boolean {
  return tls === 'off' && !isLocal(address) && !trustedProxies.some(isElsewhere)
}

const isElsewhere = (proxy: string): boolean => proxy !== 'unix' && !isLoopback(proxy.split('/')[0] ?? '')

/** The address of a descriptor of the service manager is unknown, so it counts as open. */
function openTo(address: ListenAddress): string {
  return `${formatAddress(address)} ${address.kind === 'fd' ? 'may be open to other machines' : 'is not on loopback'}`
}

const NAME_PROXY = 'remove listen.tls, or name the proxy that encrypts in listen.trusted_proxies'

/** `enforce: false`, which is also an alarm. */
export const OBSERVING: SettingRow = {
  key: 'enforce',
  wanted: '`true`',
  meaning: 'requests without a token and past the limits reach the device',
  remedy: 'remove it when the log shows no more would_refuse',
  when: ({ enforce }) => (enforce ? [] : [{ reason: 'false' }]),
}

/** `enforce: false` in an entry of `passwords`, which is also an alarm. */
export const TRYING: SettingRow = {
  key: 'passwords.N.enforce',
  wanted: '`true`: otherwise the `allow` of the name is only tried',
  meaning: 'requests outside its allow reach the device',
  remedy: 'remove enforce: false from its entry in passwords when the log shows no more would_refuse of it',
  when: ({ passwords = [] }) =>
    passwords.flatMap(({ name, enforce }, index) => {
      if (enforce) return []
      const message = `the allow of ${name} is on trial: requests outside it reach the device`
      return [{ key: `passwords.${index}.enforce`, reason: `false, for ${name}`, message }]
    }),
}

/** Every setting that a start accepts and that gives up protection. `check`, the log and the alarms take their words from this table. */
export const UNSAFE_SETTINGS: readonly SettingRow[] = [
  {
    key: 'listen.address',
    wanted: 'set: `auto` is every IPv4 and IPv6 address',
    meaning: 'clients reach Postern over IPv4 only',
    remedy: 'write auto for IPv4 and IPv6, or 0.0.0.0:8443 to keep it so',
    message: 'listen.address is not set, so clients reach Postern over IPv4 only',
    when: ({ listen: { address } }) => (address === UNSET_ADDRESS ? [{ reason: 'not set' }] : []),
  },
  {
    key: 'listen.tls',
    wanted:
      'not `off` on an address that is not loopback, unless a proxy on another machine is in `listen.trusted_proxies`',
    meaning: 'passwords and tokens cross the network in cleartext',
    remedy: NAME_PROXY,
    when: (config) =>
      isInCleartext(config) ? [{ reason: `off, and ${openTo(config.listen.address)}` }] : [],
  },
  {
    key: 'browser.login',
    wanted: '`off` where `listen.tls: off` is warned of',
    meaning: 'the login page has no form there, because the password would cross the network in cleartext',
    remedy: NAME_PROXY,
    message: 'browsers on other machines that connect to listen.address cannot log in',
    when: (config) =>
      config.browser.login === 'on' && isInCleartext(config)
        ? [{ reason: `on without TLS, and ${openTo(config.listen.address)}` }]
        : [],
  },
  {
    key: 'listen.trusted_proxies',
    wanted: 'fewer addresses of the internet than an IPv4 /8 or an IPv6 /16, in however many ranges',
    meaning: 'a client in it names any address as its own, so it passes every limit and listen.allow',
    remedy: 'list only the addresses of the proxies in front of Postern',
    when: ({ listen }) =>
      areWide(listen.trustedProxies) ? [{ reason: 'it holds a large part of the internet' }] : [],
  },
  {
    key: 'cors.origins',
    wanted: 'no `*` in an origin, which then matches no page',
    meaning: 'browsers keep the pages that it should match from the API',
    remedy: 'list each origin by itself',
    message: 'an origin in cors.origins matches no page',
    when: ({ cors: { origins } }) =>
      [...origins]
        .filter((origin) => origin.includes('*'))
        .map((origin) => ({ reason: `${origin} is no origin that a browser sends` })),
  },
  {
    key: 'admin.address',
    wanted: 'not every address of the machine',
    meaning: 'clients can read the metrics, too',
    remedy:
      'use 127.0.0.1 or an inner address, or let a firewall or a network policy close the port to clients',
    when({ admin: { address } }) {
      const host = address !== 'off' && address.kind === 'tcp' ? normalizeAddress(address.host) : undefined
      return address !== 'off' && (host === '0.0.0.0' || host === '::')
        ? [{ reason: `${formatAddress(address)} is every address of this machine` }]
        : []
    },
  },
  {
    key: 'admin.tls',
    wanted: '`on` with `admin.password_file` on an address that is not loopback',
    meaning: 'the password of the live page crosses the network in cleartext',
    remedy: 'set admin.tls: on, or put admin.address on loopback, behind SSH or a proxy with TLS',
    when: ({ admin: { address, tls, passwordFile } }) =>
      address === 'off' || passwordFile === undefined || tls === 'on' || isLocal(address)
        ? []
        : [{ reason: `off, and ${openTo(address)}` }],
  },
  OBSERVING,
  TRYING,
  {
    key: 'public_paths',
    wanted: 'without `/`, which is every path',
    meaning: 'every request reaches the device without a token',
    remedy: 'list only the paths that everyone may see, such as /login or /static/',
    when: ({ publicPaths }) => (publicPaths.includes('/') ? [{ reason: '/ is every path' }] : []),
  },
  {
    key: 'limits.wrong_passwords',
    wanted: '`slow`; the default is `off`',
    meaning: 'each address may guess as many passwords as limits.oauth lets through',
    remedy: 'set it to slow: after four wrong passwords, each further attempt of the client waits',
    when({ limits: { wrongPasswords, oauth }, browser }) {
      const rate = `${Math.ceil((oauth.requests * 60_000) / oauth.window)} a minute`
      const page = browser.login === 'on' ? ', with a login page' : ''
      return wrongPasswords === 'off' ? [{ reason: `off${page}, and limits.oauth lets ${rate} through` }] : []
    },
  },
  {
    key: 'tokens.access_lifetime',
    meaning: 'a stolen access token works for as long',
    ...atMost(7, '1h', ({ tokens }) => tokens.accessLifetime),
  },
  {
    key: 'tokens.refresh_lifetime',
    meaning: 'a stolen refresh token logs in for as long',
    ...atMost(90, '7d', ({ tokens }) => tokens.refreshLifetime),
  },
  {
    key: 'tokens.offline_grace',
    meaning: 'without the shared store, a revoked token works for as long',
    ...atMost(1, '1h', ({ tokens }) => (typeof tokens.store === 'string' ? 0 : tokens.offlineGrace)),
  },
  {
    key: 'upstream.tls.insecure',
    wanted: '`false` for an https device, also of a route; `true` is worse with `weak`',
    meaning: 'any program on the way to the device can pose as it, and read and change everything',
    remedy: 'set ca or pin instead; postern check prints the line to write',
    when: ({ upstream }) =>
      servicesOf(upstream)
        .filter(({ service: { url, tls } }) => tls.insecure && url.origin.startsWith('https:'))
        .map(({ path, service: { tls } }) => ({
          key: [...path, 'tls', 'insecure'].join('.'),
          reason: tls.weak ? 'true, with weak: true, so old ciphers are taken, too' : 'true',
        })),
  },
  {
    key: 'upstream.share.paths',
    wanted: 'no path that looks like an action, and not `/`',
    meaning: 'the device acts once for several clients that ask at the same time',
    remedy: 'list only paths that read; keep this one if it does',
    message: 'a path of upstream.share looks like an action',
    when: ({ upstream }) =>
      upstream.share.paths.flatMap((path) => {
        if (path === '/') return [{ reason: '/ is every path, also those that act' }]
        return mayAct(path) ? [{ reason: `${path} looks like an action` }] : []
      }),
  },
]

const PASSWORD_FILE = 'a password file'

/** The table for files with secrets and trusted ones. The rows for passwords come first. */
export const UNSAFE_FILES: readonly FileRow[] = [
  {
    key: PASSWORD_FILE,
    wanted: 'a hash, unless Postern also signs in to the device with the file',
    meaning: 'a reader of the file, or of a backup of it, has the password',
    remedy: hashAnew,
    when: ({ password }) =>
      password?.isPlain && !password.isSent ? 'it holds the password in plain text' : undefined,
  },
  {
    key: PASSWORD_FILE,
    wanted: 'at least 8 characters in plain text, and none of the usual passwords',
    meaning: 'guessing the password takes minutes',
    remedy: () => 'choose a longer one, which postern hash-password takes',
    when: ({ password }) => password?.weakness && `the password ${password.weakness}`,
  },
  {
    key: PASSWORD_FILE,
    wanted:
      'no SHA-1, no MD5 (`$1$`, `$apr1$`) and no other hash of a low cost; `postern hash-password` makes argon2id',
    meaning:
      'guessing it is cheap: a reader of the file, or of a backup of it, tries a million passwords a second and more',
    remedy: hashAnew,
    when: ({ password }) => password?.cheapHash && `it holds ${password.cheapHash}`,
  },
  {
    key: PASSWORD_FILE,
    wanted: 'no plain text that looks like a hash: it is taken as the password itself',
    meaning: 'clients have to send this text; the password that was hashed logs nobody in',
    remedy: hashAnew,
    message: 'a password in plain text looks like a hash',
    when: ({ password }) =>
      password?.mistakenFor && `it looks like ${password.mistakenFor}, and is taken as the password itself`,
  },
  {
    key: PASSWORD_FILE,
    wanted: 'no blank at the beginning or end of plain text',
    meaning: 'clients that send it without the blank get invalid_grant',
    remedy: ({ file }) => `remove the blank from ${file} if it is a slip`,
    message: 'a password begins or ends with a blank',
    when: ({ password }) =>
      password?.hasOuterBlank ? 'the password begins or ends with a blank, which is part of it' : undefined,
  },
  {
    key: 'a file with a secret',
    // Read permission for the group is normal (root:postern, 0640). A user namespace shows a mapped owner, so the owner is not judged.
    wanted: 'others cannot read it, and only its owner can write it',
    meaning: 'accounts that do not need the file can read or replace it',
    remedy: ({ file }) => `chmod 0640 ${file}`,
    message: 'a file with a secret is open to other users',
    when: ({ mode, isSocket }) => (isSocket ? undefined : exposureOf(mode) || undefined),
  },
  {
    key: 'password.socket',
    wanted: 'others cannot connect to it: `SocketMode=0660` and `SocketGroup=postern` in its unit',
    meaning: 'every program of this machine can try passwords there, past every limit',
    remedy: ({ file }) => `set SocketMode=0660 and the group of Postern in its unit, or chmod o-w ${file}`,
    message: 'the socket of the password hook is open to other users',
    when: ({ mode, isSocket }) => (isSocket && (mode & 0o002) !== 0 ? 'others can connect to it' : undefined),
  },
  {
    key: '`state_dir`, a file with a secret or a CA, the configuration, the socket of a device',
    wanted:
      'only root and the user of Postern can write it and the folders above it, and one of them owns `state_dir`; a sticky folder above it, such as `/tmp`, is safe',
    meaning: 'another user can replace it, or what is in it',
    remedy: ({ writer }) =>
      writer?.owner === undefined
        ? (writer?.remedy ?? '')
        : `run Postern as user ${writer.owner}, or ${writer.remedy}`,
    when: ({ writer }) => writer?.reason,
  },
]

/** The unsafe settings in the order of the table, then the unsafe files one after the other. */
export function unsafeSettings(config: Config, files: readonly FileFacts[]): readonly UnsafeSetting[] {
  return [
    ...UNSAFE_SETTINGS.flatMap(({ wanted, when, ...row }) =>
      when(config).map((found) => ({ ...row, ...found })),
    ),
    ...files.flatMap((facts) =>
      UNSAFE_FILES.flatMap(({ wanted, when, remedy, ...row }) => {
        const reason = when(facts)
        const { key, file } = facts
        return reason ? [{ ...row, key, file, reason, remedy: remedy(facts) }] : []
      }),
    ),
  ]
}

const DAY = 86_400_000

/** The part of a row for a time (ms) that is unsafe above this many days. `shorter`: a safe time for the remedy. */
function atMost(
  days: number,
  shorter: string,
  timeIn: (config: Config) => number,
): Pick<SettingRow, 'wanted' | 'remedy' | 'when'> {
  return {
    wanted: `at most ${days} ${days === 1 ? 'day, with a shared store' : 'days'}`,
    remedy: `set a shorter time, such as ${shorter}`,
    when: (config) => (timeIn(config) > days * DAY ? [{ reason: 'it is very long' }] : []),
  }
}

const EXPOSURES: readonly (readonly [bit: number, reason: string])[] = [
  [0o004, 'others can read it'],
  [0o002, 'others can write it'],
  [0o020, 'its group can write it'],
]

/** Why the mode of a file with a secret is too open; empty if it is not. */
export function exposureOf(mode: number): string {
  return EXPOSURES.filter(([bit]) => (mode & bit) !== 0)
    .map(([, reason]) => reason)
    .join(', ')
}

function hashAnew({ key, file, password }: FileFacts): string {
  if (password?.user !== undefined) {
    return `write the line that postern hash-password prints to a file of its own, and name it in ${key.replace(/\.(?:htpasswd|shadow)\.file$/, '.file')}; it is argon2id`
  }
  const [path, next] = [shellWord(file), shellWord(`${file}.new`)]
  const who = key === 'admin.password_file' ? 'viewer' : 'client'
  return `cp -p ${path} ${next} && postern hash-password > ${next} && mv ${next} ${path}; then every ${who} has to log in again`
}

/** The words that name an action, as in `/reboot`, `/api/setParam` or `/relay-toggle`. */
const ACTION =
  /^(?:add|apply|clear|cmd|command|create|delete|disable|enable|erase|exec|execute|factory|flash|install|kill|login|logout|put|reboot|remove|rename|reset|restart|restore|run|save|send|set|shutdown|start|stop|submit|toggle|trigger|unlock|update|upgrade|upload|write)$/

function mayAct(path: string): boolean {
  const words = path.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z]+/)
  return words.some((word) => ACTION.test(word.toLowerCase()))
}
