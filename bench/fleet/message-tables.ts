import type { Table } from '../figure.ts'
import { fixed } from '../format.ts'
import type { LatencySummary } from '../measure.ts'
import { RECONNECT } from './server.ts'
import type { Usage } from './usage.ts'

/** What happened to the followers of one way. */
export interface MessagesPoint {
  readonly way: string
  readonly followers: number
  /** From the reply of the script that revokes until a follower knows (ms); 0 if it knew before the reply arrived. */
  readonly latency: LatencySummary
  /** Memory of the server for each token that a follower knows (bytes). Buffers of connections make it vary by about 5. */
  readonly perToken: number
  readonly revocation: Usage
  readonly login: Usage
  /** Messages that a follower got for each token that was issued, and that expired. */
  readonly loginMessages: number
  readonly expiryMessages: number
  /** Followers that learned of a revocation while their connection was cut, and what the others have to ask for. */
  readonly heardAfterCut: number
  readonly askedAgain: number
  /** With most followers only. */
  readonly idle: IdleFollower | undefined
}

/** What one follower costs the server while nothing happens. */
export interface IdleFollower {
  readonly second: Usage
  /** Memory of its connections (bytes). */
  readonly memory: number
}

/** The figures of all points. */
export function messageTables(points: readonly MessagesPoint[]): Table[] {
  const name = ({ way, followers }: MessagesPoint): string[] => [way, String(followers)]
  return [
    {
      caption:
        'From the reply of the revoking script until a follower knows (ms); memory of the server for what it remembers',
      head: ['way', 'followers', 'p50', 'p99', 'max', 'B per known token and follower'],
      rows: points.map((point) => [
        ...name(point),
        ...[point.latency.p50, point.latency.p99, point.latency.max].map((ms) => fixed(ms, 2)),
        fixed(Math.max(0, point.perToken), 0),
      ]),
    },
    {
      caption: 'What an operation costs the server',
      head: [
        'way',
        'followers',
        ...['revocation', 'login'].flatMap((each) => [`${each}: µs`, 'commands', 'bytes sent']),
      ],
      rows: points.map((point) => [
        ...name(point),
        ...[point.revocation, point.login].flatMap(({ processor, commands, sent }) => [
          fixed(processor, 0),
          fixed(commands, 1),
          fixed(sent, 0),
        ]),
      ]),
    },
    {
      caption: 'What one follower costs the server while nothing happens',
      head: ['way', 'followers', 'µs per second', 'commands per second', 'KiB of connections'],
      rows: points.flatMap((point) =>
        point.idle === undefined
          ? []
          : [
              [
                ...name(point),
                fixed(point.idle.second.processor, 0),
                fixed(point.idle.second.commands, 2),
                fixed(point.idle.memory / 1024, 1),
              ],
            ],
      ),
    },
    {
      caption: `Messages to each follower, and what a connection that was cut for ${RECONNECT} ms costs it`,
      head: [
        'way',
        'followers',
        'messages per issued token',
        'per expired token',
        'followers that heard of it after the cut',
        'tokens to ask for again',
      ],
      rows: points.map((point) => [
        ...name(point),
        fixed(point.loginMessages, 2),
        fixed(point.expiryMessages, 2),
        `${point.heardAfterCut} of ${point.followers}`,
        String(point.askedAgain),
      ]),
    },
  ]
}

/** Points at which something was not measured. */
export function messageFaults(points: readonly MessagesPoint[]): string[] {
  return points.flatMap(({ way, followers, latency, revocation }) =>
    latency.count >= followers && latency.count % followers === 0 && revocation.processor > 0
      ? []
      : [`${way}, ${followers} followers: nothing was measured`],
  )
}
