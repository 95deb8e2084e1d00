import type { Config } from '../config/schema.ts'
import type { RequestFieldSettings } from '../forward/request-fields.ts'
import { readRequestFields } from '../forward/settings.ts'
import type { GateRules } from '../gate/admit.ts'
import { createPublicPaths } from '../gate/classify.ts'
import { type ClientOf, createClientAddress } from '../gate/client-address.ts'
import { admitsAddress, cidrsOf } from '../http/ip.ts'
import { IETF_FIELD_NAMES, LIMIT_FIELD_NAMES } from '../http/limit-fields.ts'

/** What a reload can change. It is built completely and then put into effect in one step, so no request sees a mixture. */
export interface Settings {
  readonly config: Config
  readonly gate: GateRules
  readonly clientOf: ClientOf
  readonly request: RequestFieldSettings
  /** Names of the device's response fields that the rate-limit fields replace, in lower case. */
  readonly replaced: readonly string[]
}

/** Derives the settings and reads the files that they name. Rejects with `SetupError` if a file cannot be used. */
export async function deriveSettings(config: Config): Promise<Settings> {
  const { listen, limits, upstream } = config
  const { trustedProxies, allow, deny } = listen
  return {
    config,
    gate: {
      limits,
      ietfHeaders: limits.ietfHeaders,
      headerCaps: listen,
      findPublic: createPublicPaths(config.publicPaths),
      enforce: config.enforce,
      revocationPath: config.oauth.revocationPath === 'off' ? undefined : config.oauth.revocationPath,
    },
    clientOf: createClientAddress(
      cidrsOf(trustedProxies),
      trustedProxies.includes('unix'),
      admitsAddress(allow, deny),
    ),
    request: await readRequestFields(upstream, 'upstream'),
    replaced: limits.ietfHeaders ? [...LIMIT_FIELD_NAMES, ...IETF_FIELD_NAMES] : LIMIT_FIELD_NAMES,
  }
}
