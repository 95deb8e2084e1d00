import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { DEVICE_BODY, startFastDevice } from './device.ts'
import { runProgram } from './end.ts'
import { CONNECTIONS, type Contestant, measure, mustForward } from './forwarding/contest.ts'
import { formatRows, rowOf } from './forwarding/report.ts'
import { autocannonGenerator } from './load/autocannon.ts'
import { wrkGenerator } from './load/wrk.ts'
import { canPin, currentLoad, describeMachine } from './machine.ts'
import { alternate } from './measure.ts'
import { haproxyPeer } from './peers/haproxy.ts'
import { httpProxy3KeepAlivePeer, httpProxy3Peer } from './peers/http-proxy-3.ts'
import { nginxPeer } from './peers/nginx.ts'
import { posternPeer } from './peers/postern.ts'
import { tcpRelayPeer } from './peers/tcp-relay.ts'
import { undiciPeer } from './peers/undici.ts'
import { say } from './say.ts'

const WARM_UP_SECONDS = 2

/** The proxy has the first core for itself; the device and the load share the second. */
const PROXY_CORE = 0
const OTHER_CORE = 1

const RESULTS = fileURLToPath(new URL('results/', import.meta.url))

/**
 * `node bench/forwarding.ts`: requests forwarded per second, Postern beside its peers in one run. `--rounds`,
 * `--seconds`, `--only postern,haproxy`, `--json FILE` under `bench/results/`, `--node-flag=--cpu-prof` for Postern.
 */
async function main(): Promise<0 | 1> {
  const { values: options } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '5' },
      only: { type: 'string' },
      'node-flag': { type: 'string', multiple: true, default: [] },
      json: { type: 'string' },
    },
  })
  const all = [
    posternPeer(options['node-flag']),
    httpProxy3Peer,
    httpProxy3KeepAlivePeer,
    undiciPeer,
    haproxyPeer,
    nginxPeer,
    tcpRelayPeer,
  ]
  const wanted = options.only?.split(',') ?? all.map(({ name }) => name)
  const seconds = Number(options.seconds)
  const pinned = await canPin()
  const proxyCore = pinned ? PROXY_CORE : undefined
  const otherCore = pinned ? OTHER_CORE : undefined

  const machine = await describeMachine()
  const device = await startFastDevice(otherCore)
  say(`${machine.cores} × ${machine.processor}, load average ${machine.loadAverage}; device: ${device.name}`)
  if (!pinned) say('processes are not pinned: no taskset, or a single core')

  const generators = await installed([wrkGenerator, autocannonGenerator])
  const contestants: Contestant[] = []
  for (const [peer, version] of await installed(all.filter(({ name }) => wanted.includes(name)))) {
    const running = await peer.start({ devicePort: device.port, core: proxyCore })
    for (const [generator] of generators) contestants.push({ peer, version, running, generator })
  }

  for (const contestant of contestants) {
    await mustForward(contestant, DEVICE_BODY)
    await measure(contestant, WARM_UP_SECONDS, otherCore)
  }
  const results = await alternate(contestants, Number(options.rounds), async (contestant, round) => {
    const sample = await measure(contestant, seconds, otherCore)
    const { peer, generator } = contestant
    say(`round ${round + 1}: ${peer.name}, ${generator.name}: ${sample.requestsPerSecond.toFixed(0)}/s`)
    return sample
  })
  const loadAfter = currentLoad()

  const rows = [...results].map(([contestant, samples]) => rowOf(contestant, samples))
  for (const [{ name }, version] of generators) {
    process.stdout.write(`\n${name} ${version}, ${CONNECTIONS} connections, device ${device.name}\n\n`)
    process.stdout.write(`${formatRows(rows.filter(({ generator }) => generator === name))}\n`)
  }
  process.stdout.write(`\nload average ${machine.loadAverage} before, ${loadAfter} after\n`)

  if (options.json !== undefined) {
    const about = { at: new Date().toISOString(), machine, loadAfter, device: device.name, pinned }
    const tools = Object.fromEntries(generators.map(([{ name }, version]) => [name, version]))
    await save(options.json, { ...about, generators: tools, connections: CONNECTIONS, seconds, rows })
  }
  return rows.every(({ failed }) => failed === 0) ? 0 : 1
}

/** Those that are there, with their versions. */
async function installed<Candidate extends { readonly name: string; version(): Promise<string | undefined> }>(
  candidates: readonly Candidate[],
): Promise<(readonly [Candidate, string])[]> {
  const found: (readonly [Candidate, string])[] = []
  for (const candidate of candidates) {
    const version = await candidate.version()
    if (version === undefined) say(`${candidate.name} is not installed: left out`)
    else found.push([candidate, version])
  }
  return found
}

async function save(name: string, report: object): Promise<void> {
  const file = resolve(RESULTS, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`)
  say(`written: ${file}`)
}

/** Many times what it takes (ms). */
const LONGEST = 30 * 60_000

await runProgram(main, LONGEST)
