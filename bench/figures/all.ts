import type { Figure } from '../figure.ts'
import { forwarding } from './p1-forwarding.ts'
import { floor } from './p1f-floor.ts'
import { refusals } from './p2-refusals.ts'
import { shield } from './p3-shield.ts'
import { latency } from './p4-latency.ts'
import { tls } from './p5-tls.ts'
import { memory } from './p6-memory.ts'
import { start } from './p7-start.ts'
import { growthOfTables } from './p8-growth.ts'
import { bulk } from './p9-bulk.ts'
import { admission } from './p10-admission.ts'
import { middle } from './p11-middle.ts'
import { slowAndMany } from './s1-slow-and-many.ts'

/** In the order in which they are measured and told. */
export const FIGURES: readonly Figure[] = [
  forwarding,
  floor,
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
]
