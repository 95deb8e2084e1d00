import type { Figure } from '../figure.ts'
import { requestCost } from '../fleet/f1-request-cost.ts'
import { severalSidecars } from '../fleet/f2-several-sidecars.ts'
import { storeCapacity } from '../fleet/f3-store-capacity.ts'
import { messages } from '../fleet/messages.ts'
import { connections } from '../growth/g1-connections.ts'
import { bodySize } from '../growth/g2-body-size.ts'
import { clients } from '../growth/g3-clients.ts'
import { tokens } from '../growth/g4-tokens.ts'
import { tunnels } from '../growth/g5-tunnels.ts'
import { forwarding } from './p1-forwarding.ts'
import { floor } from './p1f-floor.ts'
import { watched } from './p1w-watched.ts'
import { refusals } from './p2-refusals.ts'
import { shield } from './p3-shield.ts'
import { latency } from './p4-latency.ts'
import { tls } from './p5-tls.ts'
import { memory } from './p6-memory.ts'
import { start } from './p7-start.ts'
import { growthOfTables } from './p8-growth.ts'
import { bulk } from './p9-bulk.ts'
import { admission, middle } from './p10-p11-request-cost.ts'
import { slowAndMany } from './s1-slow-and-many.ts'

/** What sharing tokens and windows costs: `--fleet` measures these alone. */
export const FLEET: readonly Figure[] = [requestCost, severalSidecars, storeCapacity, messages]

/** In the order in which they are measured and reported. */
export const FIGURES: readonly Figure[] = [
  forwarding,
  floor,
  watched,
  refusals,
  shield,
  latency,
  tls,
  memory,
  start,
  growthOfTables,
  bulk,
  admission,
  middle,
  slowAndMany,
  ...FLEET,
]

/** The figures that `--growth` adds. */
export const CURVES: readonly Figure[] = [connections, bodySize, clients, tokens, tunnels]
