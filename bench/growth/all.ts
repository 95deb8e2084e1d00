import type { Figure } from '../figure.ts'
import { connections } from './g1-connections.ts'
import { bodySize } from './g2-body-size.ts'
import { clients } from './g3-clients.ts'
import { tokens } from './g4-tokens.ts'
import { tunnels } from './g5-tunnels.ts'

/** How things grow: what `--growth` adds to the figures. */
export const CURVES: readonly Figure[] = [connections, bodySize, clients, tokens, tunnels]
