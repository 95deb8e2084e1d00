import { MalformedAnswer } from './malformed-answer.ts'
import type { RelayEnd } from './relay.ts'

/** `strict` and `tolerant` say what to do; `auto` begins strict and learns. */
export type ParserMode = 'strict' | 'tolerant' | 'auto'

export type Lane = 'strict' | 'tolerant'

/** Which parser the device's answers need. One for each device; it only ever becomes more tolerant. */
export interface ParserChoice {
  /** The lane for the next request. */
  readonly lane: Lane
  /**
   * Learns from how a request ended in the strict lane. True when its answer was refused, nothing of it has reached
   * the client, and the tolerant lane may be able to read it: worth repeating, where that is safe.
   */
  strictEnded(end: RelayEnd): boolean
}

/** @param onTolerant told once, when the device has proved sloppy */
export function createParserChoice(mode: ParserMode, onTolerant: () => void): ParserChoice {
  let lane: Lane = mode === 'tolerant' ? 'tolerant' : 'strict'
  return {
    get lane() {
      return lane
    },
    strictEnded(end) {
      if (mode !== 'auto' || !isRefusedAnswer(end)) return false
      // Others may have found out meanwhile.
      if (lane === 'strict') {
        lane = 'tolerant'
        onTolerant()
      }
      return end.kind === 'failed'
    },
  }
}

/**
 * The strict parser could not read what the device sent; told from a device that went away, and from a client whose
 * upload broke. Within a body too, where a chunk was framed oddly: then only the next request gains.
 */
function isRefusedAnswer(end: RelayEnd): boolean {
  return (end.kind === 'failed' || end.kind === 'broken') && end.error instanceof MalformedAnswer
}
