import type { ServiceConfig } from '../../config/upstream-fields.ts'
import { probeDevice } from '../../device/own-request.ts'
import type { UpstreamTarget } from '../../device/target.ts'
import { CHROMIUM, CURL, type Sample, sampleFields } from '../../forward/sample-heads.ts'
import { readRequestFields, upstreamDeadlines, upstreamTarget } from '../../forward/service-settings.ts'
import type { Warning } from './finding.ts'
import { leavingOut } from './leaving-out.ts'
import type { Service } from './services.ts'

/** Other settings with which the device may accept a request. */
interface Trial {
  /** The settings as a line of YAML, for the section of the service. */
  readonly line: string
  /** The values that stay in addition to the line, as the end of a sentence. */
  readonly beside?: string
  readonly change: Partial<ServiceConfig>
}

const OLD: Trial = { line: 'version: "1.0"', change: { version: '1.0' } }

/** Statuses with which a device refuses the head of a request; undefined: no answer. `401` and `404` are about the page. */
const REFUSED: ReadonlySet<number | undefined> = new Set([undefined, 400, 403, 413, 414, 421, 431, 505])

/** Statuses with which a device refuses a `Host` that is not its own. */
const REFUSED_HOST: ReadonlySet<number | undefined> = new Set([400, 403, 421])

/**
 * Requests a page as curl and as a browser do, through Postern. If the device refuses one, tries it with other settings. Undefined if the
 * device accepts both, or refuses the request with all settings: then the reason is not its head.
 */
export async function tryHeads(
  { service, key, clock, page }: Service & { readonly page: string },
  signal: AbortSignal,
): Promise<Warning | undefined> {
  // An unreadable header file is a finding of the check of headers.
  if ((await readRequestFields(service, key).catch(() => true)) === true) return undefined
  const target = await upstreamTarget(service, key)
  const ask = async (sample: Sample, change: Partial<ServiceConfig> = {}): Promise<number | undefined> => {
    const changed = { ...service, ...change }
    const device: UpstreamTarget = { ...target, version: changed.version, reuse: 'never' }
    const fields = sampleFields(sample, await readRequestFields(changed, key))
    return probeDevice(device, upstreamDeadlines(service), page, clock, fields, { signal }).then(
      ({ status }) => status,
      () => undefined,
    )
  }
  for (const sample of [CURL, CHROMIUM]) {
    const refused = await ask(sample)
    if (!REFUSED.has(refused)) continue
    const trials = REFUSED_HOST.has(refused)
      ? [otherHost(service), ...shorter(service), OLD]
      : [...shorter(service), OLD]
    for (const { line, beside = '', change } of trials) {
      const answered = await ask(sample, change)
      if (REFUSED.has(answered) || Number(answered) >= 500) continue
      const found = refused === undefined ? 'no answer' : `answered ${refused}`
      return {
        warning: `${found} to a request of ${sample.program} through Postern, and ${answered} with ${key}: {${line}}`,
        meaning: 'the device refuses the requests of clients',
        remedy: `write ${key}: {${line}}${beside}`,
        line,
      }
    }
    return undefined
  }
  return undefined
}

/** The fields about the client and the proxy. Without these and `OF_BROWSERS`, a request fits 512 bytes. */
const FORWARDING = ['X-Forwarded-*', 'Via', 'X-Request-Id']
const OF_BROWSERS = ['Cookie', 'Sec-*']

function shorter(service: ServiceConfig): readonly Trial[] {
  return [FORWARDING, [...FORWARDING, ...OF_BROWSERS]].map((names) => leavingOut(names, service))
}

function otherHost({ host }: ServiceConfig): Trial {
  const other = host === 'preserve' ? 'target' : 'preserve'
  return { line: `host: ${other}`, change: { host: other } }
}
