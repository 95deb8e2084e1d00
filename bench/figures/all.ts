import { requestCost } from '../fleet/f1-request-cost.ts'
import { severalSidecars } from '../fleet/f2-several-sidecars.ts'
import { storeCosts } from '../fleet/f3-store-costs.ts'
import type { Figure } from '../lab.ts'
import { places } from './d1-places.ts'
import { sharing } from './d2-sharing.ts'
import { GROWTH } from './g-growth.ts'
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
import { admission } from './p10-admission.ts'
import { slowAndMany } from './s1-attacks.ts'

/** In the order in which they are measured and reported. */
export const FIGURES: readonly Figure[] = [
  ...[forwarding, floor, watched, refusals, shield, latency, tls, memory, start, growthOfTables, bulk],
  ...[admission, slowAndMany, places, sharing, requestCost, severalSidecars, storeCosts],
]

/** The figures that `--growth` adds. */
export const CURVES: readonly Figure[] = GROWTH
