import process from 'node:process'
import type { Program } from '../program.ts'
import { startNodePeer } from './node-peer.ts'
import type { Peer } from './peer.ts'

export interface FixedAnswer {
  readonly status: number
  /** Names and values in turn. */
  readonly fields: readonly string[]
  readonly body: string
}

/** Bare `node:http`, which answers everything with the same bytes; with the flags and environment of this program. */
export function answeringPeer(answer: FixedAnswer, program?: Program): Peer {
  return {
    name: 'node:http',
    does: 'always the same bytes',
    fast: true,
    version: async () => process.versions.node,
    start: (place) => startNodePeer('answering-server.mjs', place, [JSON.stringify(answer)], program),
  }
}
