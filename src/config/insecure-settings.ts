import { isLoopback, normalizeAddress } from '../http/ip.ts'
import { formatAddress } from '../system/listen-address.ts'
import type { Config } from './schema.ts'
import type { ConfigWarning } from './secrets.ts'
import { type NamedService, servicesOf } from './upstream-fields.ts'

/** Settings that a start accepts, and that give up protection. */
export function insecureSettings({
  listen,
  admin,
  upstream,
  enforce,
  browser,
}: Config): readonly ConfigWarning[] {
  const warnings: ConfigWarning[] = []
  const { address, tls, insecure } = listen
  const isLocal = address.kind === 'unix' || (address.kind === 'tcp' && isLoopback(address.host))
  if (tls === 'off' && !insecure && !isLocal) {
    warnings.push({
      key: 'listen.tls',
      reason:
        address.kind === 'fd'
          ? `off, and ${formatAddress(address)} may be open to other machines`
          : `off, and ${formatAddress(address)} is not on loopback`,
      meaning: 'passwords and tokens cross the network in cleartext',
      remedy: 'remove listen.tls, or set listen.insecure: true if something else encrypts them on the way',
    })
  }
  if (browser.login === 'on' && tls === 'off' && !isLocal && listen.trustedProxies.length === 0) {
    warnings.push({
      key: 'browser.login',
      reason: `on without TLS, and ${formatAddress(address)} is not on loopback`,
      message: 'browsers on other machines cannot log in',
      meaning: 'their login page has no form, because the password would cross the network in cleartext',
      remedy: 'remove listen.tls, or name the proxy that encrypts in listen.trusted_proxies',
    })
  }
  const inner = admin.address === 'off' ? undefined : admin.address
  if (inner?.kind === 'tcp' && ['0.0.0.0', '::'].includes(normalizeAddress(inner.host) ?? '')) {
    const page =
      admin.passwordFile === undefined
        ? ''
        : ', and the password of the live page crosses the network in cleartext'
    warnings.push({
      key: 'admin.address',
      reason: `${formatAddress(inner)} is every address of this machine`,
      meaning: `clients can read the metrics, too${page}`,
      remedy:
        'use 127.0.0.1 or an inner address, or let a firewall or a network policy close the port to clients',
    })
  }
  if (!enforce) {
    warnings.push({
      key: 'enforce',
      reason: 'false',
      meaning: 'requests without a token and past the limits reach the device',
      remedy: 'remove it when the log shows no more would_refuse',
    })
  }
  warnings.push(...servicesOf(upstream).flatMap(sharedActions))
  return warnings
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
