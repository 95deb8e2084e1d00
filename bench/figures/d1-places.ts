import { runModule } from '../child.ts'
import type { Figure, Lab } from '../lab.ts'
import { checkOf } from '../measure.ts'
import { type Drive, type Driven, playModel } from '../models/drive.ts'
import { MODELS, type ModelName } from '../models/models.ts'
import { posternPeer } from '../peers/postern.ts'
import { say } from '../run-program.ts'

const CLIENTS = 64
/** A model may crash and be away for 10 s, or change every 15 s (s). */
const LENGTHS: Partial<Record<ModelName, number>> = { crashes: 45, changes: 45 }
const LENGTH = 12

export const places: Figure = {
  id: 'D1',
  title: 'Devices that break down under load',
  about: `${CLIENTS} clients that each send a request, await its response, and send the next one, in front of nine devices that break down under load, each in its own way: with the learned bound, with the best fixed one, and with 64. The first 200 responses do not count.`,
  async measure(lab) {
    const rows: string[][] = []
    const shares: number[] = []
    const tails: number[] = []
    for (const model of Object.keys(MODELS) as ModelName[]) {
      const { best, about } = MODELS[model]
      const fixed = await driven(lab, model, String(best))
      const learned = await driven(lab, model, 'auto')
      const wide = await driven(lab, model, '64')
      shares.push(learned.throughput / fixed.throughput)
      tails.push((learned.p99 ?? Number.POSITIVE_INFINITY) / (fixed.p99 ?? 1))
      rows.push([about, String(best), shown(fixed), shown(learned), shown(wide)])
      say(`  ${model}: ${shown(learned)}; ${best}: ${shown(fixed)}; 64: ${shown(wide)}`)
    }
    const head = ['device', 'best', 'best bound: requests/s, p99', 'learned', '64']
    const share = Math.min(...shares)
    const tail = Math.max(...tails)
    return {
      checks: [
        checkOf('D1 throughput', 'learned : best fixed bound, the worst device', '×', share, {
          reach: 0.9,
          better: 'more',
        }),
        checkOf('D1 p99', 'learned : best fixed bound, the worst device', '×', tail, { reach: 1.5 }),
      ],
      tables: [{ caption: 'Each device', head, rows }],
    }
  },
}

function shown({ throughput, p99, crashes }: Outcome): string {
  const crashed = crashes === 0 ? '' : `, ${crashes} crashes`
  return `${throughput.toFixed(0)}, ${p99 === null ? '-' : `${p99.toFixed(0)} ms`}${crashed}`
}

type Outcome = Driven & { readonly crashes: number }

async function driven(lab: Lab, model: ModelName, bound: string): Promise<Outcome> {
  const device = await playModel(model, lab.otherCore)
  const set = [`upstream.max_in_flight=${bound}`]
  const peer = posternPeer({ set, program: lab.program })
  const { url, headers, children } = await peer.start({ devicePort: device.port, core: lab.proxyCore })
  const time = 1_000 * (LENGTHS[model] ?? LENGTH)
  const plan: Drive = { url, headers, model, clients: CLIENTS, time, warmUp: 200 }
  const drive = new URL('../models/drive.ts', import.meta.url).href
  const result = await runModule<Driven>(drive, plan, { core: lab.otherCore, timeout: time + 30_000 })
  const { crashes } = await device.counts()
  await Promise.all([...children, device.child].map((child) => child.stop()))
  return { ...result, crashes }
}
