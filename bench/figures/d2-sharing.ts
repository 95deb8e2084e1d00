import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { freePort, listening, startChild } from '../child.ts'
import type { Figure, Lab } from '../lab.ts'
import { type PollReport, runPolls } from '../load/polls.ts'
import { checkOf, summarize } from '../measure.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'

const CLIENTS = 50
const PERIOD = 1000
const DEVICE_TIME = 100
const PATH = '/status'

/** Whether all clients poll at the same time, and what the sidecar is told. */
interface Setting {
  readonly name: string
  readonly spread: number
  readonly set: readonly string[]
}

/** Learned, as by default: the device takes one. */
const PLACES = 'upstream.max_in_flight={min: 1, max: 4}'
const PATHS = `upstream.share.paths=${PATH}`
const SETTINGS: readonly Setting[] = [
  { name: 'at the same time, without sharing', spread: 0, set: [] },
  { name: 'at the same time, shared', spread: 0, set: [PATHS] },
  { name: 'spread, without sharing', spread: PERIOD, set: [] },
  { name: 'spread, shared with for: 900ms', spread: PERIOD, set: [PATHS, 'upstream.share.for=900ms'] },
]

interface Round extends PollReport {
  /** Requests at the device in a period. */
  readonly asked: number
  /** Polls with status 200 in a period. */
  readonly answered: number
}

export const sharing: Figure = {
  id: 'D2',
  title: 'Many clients that poll one page',
  about: `${CLIENTS} clients poll one page every second. The device takes one connection, refuses a second one, and answers after ${DEVICE_TIME} ms. With upstream.share it gets one request in a period.`,
  async measure(lab) {
    const rounds = new Map<Setting, Round[]>(SETTINGS.map((setting) => [setting, []]))
    for (let round = 0; round < lab.rounds; round += 1) {
      for (const setting of SETTINGS) {
        const measured = await measureOnce(lab, setting)
        rounds.get(setting)?.push(measured)
        say(
          `  ${setting.name}: ${measured.asked.toFixed(2)} requests a period, p99 ${measured.p99.toFixed(0)} ms`,
        )
      }
    }
    const of = (setting: Setting, what: 'asked' | 'answered' | 'p99' | 'failed'): number[] =>
      (rounds.get(setting) ?? []).map((round) => round[what])
    const shared = SETTINGS.filter(({ set }) => set.length > 0)
    return {
      checks: shared.flatMap((setting) => {
        const id = setting.spread === 0 ? 'D2 together' : 'D2 spread'
        return [
          checkOf(
            `${id} requests`,
            `requests at the device in a period, polls ${setting.name}`,
            '×',
            summarize(of(setting, 'asked')),
            { reach: 1.1 },
          ),
          checkOf(`${id} p99`, `p99 of the polls ${setting.name}`, 'ms', summarize(of(setting, 'p99')), {
            reach: 250,
          }),
        ]
      }),
      tables: [
        {
          caption: `${CLIENTS} clients, one page, a device with one connection`,
          head: ['polls', 'requests a period', 'answered a period', 'p99 (ms)', 'refused'],
          rows: SETTINGS.map((setting) => [
            setting.name,
            ...[of(setting, 'asked'), of(setting, 'answered'), of(setting, 'p99')].map(
              (each) => summarize(each)?.median.toFixed(1) ?? '',
            ),
            String(of(setting, 'failed').reduce((sum, failed) => sum + failed, 0)),
          ]),
        },
      ],
      faults: shared.flatMap((setting) => {
        const failed = of(setting, 'failed').reduce((sum, each) => sum + each, 0)
        return failed > 0 ? [`${failed} polls ${setting.name} got no 200`] : []
      }),
    }
  },
}

/** Each round has a device and a sidecar of its own, so no round begins with what the one before left behind. */
async function measureOnce(lab: Lab, { spread, set }: Setting): Promise<Round> {
  const [port, control] = [await freePort(), await freePort()]
  const model = fileURLToPath(new URL('../models/device.ts', import.meta.url))
  const args = [model, 'one', String(port), String(control), String(DEVICE_TIME)]
  const device = await startChild(process.execPath, args, { core: lab.otherCore })
  await listening(control, device)
  const peer = posternPeer({ set: [...set, PLACES], program: lab.program })
  const { url, headers, children } = await peer.start({ devicePort: port, core: lab.proxyCore })
  const before = await requestsAt(control)
  const periods = Math.max(5, lab.seconds)
  const polls = { url: `${url}${PATH}`, headers, clients: CLIENTS, period: PERIOD, spread, periods }
  const report = await runPolls(polls, lab.otherCore)
  const asked = ((await requestsAt(control)) - before) / periods
  await Promise.all([device, ...children].map((child) => child.stop()))
  return { ...report, asked, answered: report.count / periods }
}

/** The requests that the device has seen. */
async function requestsAt(control: number): Promise<number> {
  const counts: unknown = JSON.parse(await text(connect(control, '127.0.0.1')))
  return (counts as { requests: number }).requests // `Counts` of `models/device.ts`
}
