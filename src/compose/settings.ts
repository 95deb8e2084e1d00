import { limitsOf } from '../config/policy-fields.ts'
import { withoutHsts } from '../config/response-header-field.ts'
import type { Config } from '../config/schema.ts'
import { servicesOf } from '../config/upstream-fields.ts'
import type { RequestFieldSettings } from '../forward/request-fields.ts'
import { readRequestFields } from '../forward/service-settings.ts'
import type { GateRules } from '../gate/admit.ts'
import { createPublicPaths } from '../gate/classify.ts'
import { type ClientOf, createClientAddress } from '../gate/client-address.ts'
import { CORS_FIELD_NAMES } from '../gate/cors.ts'
import { admitsAddress, cidrsOf } from '../http/ip.ts'
import { IETF_FIELD_NAMES, LIMIT_FIELD_NAMES } from '../http/limit-fields.ts'
import { compileAllow, type Scopes } from '../http/scope.ts'
import { listenBounds, type SomeBounds } from './bounds.ts'

/** The values that a reload can change. All are built first and then take effect in one step, so no request sees a mixture. */
export interface Settings {
  readonly config: Config
  /** The bounds of a test. A reload keeps them. */
  readonly bounds: SomeBounds
  /** How long (ms) a client may pause in a request body. */
  readonly bodyTimeout: number
  readonly gate: GateRules
  readonly clientOf: ClientOf
  /** How request fields change for each service, by its path in `upstream.routes`; empty for the main service. */
  readonly requests: ReadonlyMap<string, RequestFieldSettings>
  /** Names of the device's response fields that the rate-limit fields replace, in lower case. */
  readonly replaced: readonly string[]
}

/** The scope of each name of `passwords`; undefined without names. */
function scopesIn({ passwords }: Config): Scopes | undefined {
  if (passwords === undefined) return undefined
  return new Map(
    passwords.map(({ name, allow, enforce }) => [
      name,
      { name, allows: allow === undefined ? undefined : compileAllow(allow), onTrial: !enforce },
    ]),
  )
}

/** `upstream`, without HSTS for a cleartext listener (RFC 6797 §7.2): a change of `listen.tls` may wait for a restart. */
function served({ listen, upstream }: Config): Config['upstream'] {
  if (listen.tls !== 'off') return upstream
  return { ...upstream, responseHeaders: withoutHsts(upstream.responseHeaders) }
}

/** How fields change on the way to each service and back. */
async function requestsOf(upstream: Config['upstream']): Promise<Settings['requests']> {
  const services = servicesOf(upstream).map(
    async ({ path, service }) => [path[2] ?? '', await readRequestFields(service, path.join('.'))] as const,
  )
  return new Map(await Promise.all(services))
}

/** Derives the settings and reads the files that they name. Rejects with `SetupError` if a file cannot be used. */
export async function deriveSettings(config: Config, bounds: SomeBounds = {}): Promise<Settings> {
  const { listen, limits, browser, cors } = config
  const { trustedProxies, allow } = listen
  const bound = listenBounds(bounds)
  const hasCors = cors.origins.length > 0
  return {
    config,
    bounds,
    bodyTimeout: bound.bodyTimeout,
    gate: {
      limits: limitsOf(config),
      ietfHeaders: limits.ietfHeaders,
      headerCaps: bound,
      findPublic: createPublicPaths(config.publicPaths),
      scopes: scopesIn(config),
      enforce: config.enforce,
      browser: browser.login === 'on',
      cors: hasCors ? new Set(cors.origins) : undefined,
      revocationPath: config.oauth.revocationPath === 'off' ? undefined : config.oauth.revocationPath,
    },
    clientOf: createClientAddress(
      cidrsOf(trustedProxies),
      trustedProxies.includes('unix'),
      admitsAddress(allow),
    ),
    requests: await requestsOf(served(config)),
    replaced: [
      ...LIMIT_FIELD_NAMES,
      ...(limits.ietfHeaders ? IETF_FIELD_NAMES : []),
      ...(hasCors ? CORS_FIELD_NAMES : []),
    ],
  }
}
