import { startPeers, stopPeers } from '../contest/contest.ts'
import type { Figure } from '../figure.ts'
import { haproxyPeer } from '../peers/haproxy.ts'
import { posternPeer } from '../peers/postern.ts'
import { type Curve, curveFindings, type Point } from './curve.ts'
import { measurePoint } from './point.ts'

const CONNECTIONS = [1, 2, 4, 16, 64, 256, 1_000]

/** By default Postern accepts 1,000 connections; 64 requests are at the device and 128 wait. */
const ROOM = ['listen.max_connections=2000', 'upstream.queue.size=2000']

export const connections: Figure = {
  id: 'G1',
  title: 'Throughput by connections',
  about:
    'Admitted requests over 1 to 1,000 keep-alive connections. At most 64 requests are at the device at once (`upstream.max_in_flight`) and the others wait; here the queue is long enough for all of them.',
  async measure(lab) {
    const peers = [posternPeer({ set: ROOM, program: lab.program }), haproxyPeer]
    const started = await startPeers(lab, peers, lab.device.port)
    const curves: Curve[] = []
    for (const peer of started) {
      const contestant = { ...peer, generator: lab.wrk ?? lab.autocannon }
      const points: Point[] = []
      for (const count of CONNECTIONS) {
        points.push(
          await measurePoint(contestant, count, 'connections', {
            ...contestant.running,
            connections: count,
            until: { seconds: lab.seconds },
            core: lab.otherCore,
          }),
        )
      }
      curves.push({ name: peer.peer.name, ours: peer.peer.name === 'postern', points })
    }
    await stopPeers(started)
    return curveFindings(
      {
        id: 'G1',
        what: 'connections',
        rate: 'requests/s',
        scale: 'log',
        unit: 'connection',
        rises: 'one connection waits for its own response; from here on there is always a request to process',
        falls:
          'requests past upstream.max_in_flight wait in the queue, and each connection is one more socket to poll',
      },
      curves,
    )
  },
}
