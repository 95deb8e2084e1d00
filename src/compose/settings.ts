import type { Config } from '../config/schema.ts'
import { readRequestFields } from '../forward/added-fields.ts'
import type { RequestFieldSettings } from '../forward/request-fields.ts'
import type { GateSettings } from '../gate/admit.ts'
import { type ClientOf, createClientAddress } from '../gate/client-address.ts'
import { createPublicPaths } from '../gate/public-paths.ts'
import { parseCidr } from '../http/ip.ts'
import { IETF_FIELD_NAMES, LIMIT_FIELD_NAMES } from '../limits/limit-fields.ts'

/** What a reload changes while requests run: derived in one piece and swapped in one step, so that none sees half. */
export interface Settings {
  readonly config: Config
  readonly gate: GateSettings
  readonly clientOf: ClientOf
  readonly request: RequestFieldSettings
  /** Names of the device's own header fields that the limit's replace, in lower case. */
  readonly replaced: readonly string[]
}

/** Reads what the configuration only names. Fails with the reason if a file cannot be used. */
export async function deriveSettings(config: Config): Promise<Settings> {
  const { listen, limits, upstream } = config
  const proxies = listen.trustedProxies.map(parseCidr).filter((cidr) => cidr !== undefined)
  return {
    config,
    gate: {
      limits,
      ietfHeaders: limits.ietfHeaders,
      headerCaps: listen,
      isPublic: createPublicPaths(config.publicPaths),
      enforce: config.enforce,
      revocationPath: config.oauth.revocationPath === 'off' ? undefined : config.oauth.revocationPath,
    },
    clientOf: createClientAddress(proxies, listen.trustedProxies.includes('unix')),
    request: await readRequestFields(upstream, 'upstream'),
    replaced: limits.ietfHeaders ? [...LIMIT_FIELD_NAMES, ...IETF_FIELD_NAMES] : LIMIT_FIELD_NAMES,
  }
}
