import { stopPeers } from '../contest/contest.ts'
import { startNodeDevice } from '../device.ts'
import type { Figure } from '../figure.ts'
import { type Curve, curveFindings, type Point } from './curve.ts'
import { measurePoint, startPostern } from './point.ts'

/** Bytes. */
const SIZES = [0, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 10 << 20]

const CONNECTIONS = 16

/** Connections for large bodies, so that some transfers complete within a round. */
const FEW = 4
const LARGE = 1 << 20

export const bodySize: Figure = {
  id: 'G2',
  title: 'Throughput by body size',
  about: `Bodies of 0 to 10 MiB, down from the device and up to it, on ${CONNECTIONS} connections, from 1 MiB on ${FEW}; 0.1 KiB on the axis means no body. wrk reads the downloads if it is installed, because autocannon buffers every body.`,
  async measure(lab) {
    const device = await startNodeDevice(lab.otherCore)
    const contestant = await startPostern(lab, lab.autocannon, [], device.port)
    const { url, headers } = contestant.running
    const down: Point[] = []
    const up: Point[] = []
    for (const size of SIZES) {
      const connections = size < LARGE ? CONNECTIONS : FEW
      const common = { headers, connections, until: { seconds: lab.seconds }, core: lab.otherCore }
      const reader = { ...contestant, generator: lab.wrk ?? lab.autocannon }
      const from = `${url}/bytes/${size}`
      down.push(await measurePoint(reader, size, 'bytes down', { ...common, url: from }))
      const sender = { ...contestant, generator: lab.autocannon }
      const sent = { ...common, url, upload: size, body: String(size) }
      up.push(await measurePoint(sender, size, 'bytes up', sent))
    }
    await stopPeers([contestant])
    await device.child.stop()
    const curves: Curve[] = [
      { name: 'postern, down', ours: true, points: down.map(perKibibyte) },
      { name: 'postern, up', ours: true, points: up.map(perKibibyte) },
    ]
    return curveFindings(ABOUT, curves)
  },
}

const ABOUT = {
  id: 'G2',
  what: 'KiB of body',
  rate: 'MiB/s',
  scale: 'log',
  rises: 'below that size the cost per request dominates, not that per byte',
  falls: 'every piece is copied through four sockets, whose buffers no longer fit the processor caches',
} as const

const MEBIBYTE = 1 << 20

/** Size in KiB, rate in MiB/s. A logarithmic axis has no zero, so no body becomes 0.1 KiB. */
function perKibibyte({ x, rate, ...point }: Point): Point {
  return { ...point, x: x === 0 ? 0.1 : x / 1024, rate: (rate * x) / MEBIBYTE }
}
