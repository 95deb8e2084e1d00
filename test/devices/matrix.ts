import { realClock } from '../support/clock.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { hasLibrary, isInstalled } from '../support/tools.ts'
import { type Aspect, aspects } from './aspects.ts'
import { type RealServer, servers } from './servers.ts'
import { makeSite } from './site.ts'

/**
 * What is found of one aspect of one server: `same` and `better` than direct need no key, `alike` fails without the sidecar,
 * too, and with `fails` only the sidecar fails. An object has the keys that make it work.
 */
export type Finding = 'none' | 'same' | 'better' | 'alike' | 'fails' | YamlPart

export interface Row {
  readonly bench: Bench
  /** By the name of the aspect. */
  readonly findings: Map<string, Finding>
}

/** A running server, and the sidecars in front of it by configuration. */
export interface Bench {
  readonly server: RealServer
  readonly url: string
  readonly sidecars: Map<string, Promise<readonly TestSidecar[]>>
  /** The requests that the device itself answers improperly. */
  readonly broken: Set<string>
  /** The last difference, by the name of the aspect. */
  readonly differences: Map<string, unknown>
}

/** Starts the server; undefined where it is not installed. */
export async function startBench(server: RealServer): Promise<Bench | undefined> {
  if (!isThere(server)) return undefined
  const url = await server.start(makeSite())
  return url === undefined
    ? undefined
    : { server, url, sidecars: new Map(), broken: new Set(), differences: new Map() }
}

/** Whether the server's program and its library are installed. */
export function isThere({ program, probe }: RealServer): boolean {
  return probe === undefined ? isInstalled(program) : hasLibrary(probe)
}

/** Tries one aspect, over HTTP/1.1 and HTTP/2: without a key, then with each remedy. */
export async function measure(bench: Bench, aspect: Aspect): Promise<Finding> {
  if (!aspect.applies(bench.server)) return 'none'
  const direct = (await failureOf(aspect.direct?.(bench.server, bench.url))) === undefined
  if (await worksThrough(bench, aspect, {})) return direct ? 'same' : 'better'
  for (const keys of aspect.remedies) if (await worksThrough(bench, aspect, keys)) return keys
  return direct ? 'fails' : 'alike'
}

async function worksThrough(bench: Bench, aspect: Aspect, upstream: YamlPart): Promise<boolean> {
  const { server, url, sidecars } = bench
  const key = JSON.stringify(upstream)
  const pending =
    sidecars.get(key) ??
    Promise.all(
      (['http1', 'h2'] as const).map((transport) =>
        startSidecar({ transport, device: { url }, clock: realClock(), config: { upstream } }),
      ),
    )
  sidecars.set(key, pending)
  for (const sidecar of await pending) {
    const pair = {
      server,
      url,
      sidecar,
      token: await sidecar.token(),
      broken: (request: string) => bench.broken.add(request),
    }
    const difference = await failureOf(aspect.through(pair))
    if (difference !== undefined) {
      bench.differences.set(aspect.name, difference)
      return false
    }
  }
  return true
}

/** Why it failed; undefined if it did not. */
async function failureOf(attempt: Promise<void> | undefined): Promise<unknown> {
  try {
    await attempt
    return undefined
  } catch (error) {
    return error
  }
}

/** How many servers are measured at once: most of the time is waiting. */
const AT_ONCE = 4

/** Measures every server that is installed. */
export async function measureAll(): Promise<ReadonlyMap<string, Row>> {
  const rows = new Map<string, Row>()
  const left = [...servers]
  const work = async (): Promise<void> => {
    for (let server = left.shift(); server !== undefined; server = left.shift()) {
      const bench = await startBench(server)
      if (bench === undefined) continue
      const findings = new Map<string, Finding>()
      for (const aspect of aspects) {
        findings.set(aspect.name, await measure(bench, aspect))
      }
      rows.set(server.name, { bench, findings })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return rows
}
