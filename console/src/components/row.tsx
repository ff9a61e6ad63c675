// A row of a list: a name, facts about it, and what can be done with it.
import type { ReactNode } from 'react'

interface RowProps {
  sign?: ReactNode
  name: ReactNode
  children?: ReactNode
  facts: ReactNode
  acts?: ReactNode
}

export const Row = ({ sign, name, children, facts, acts }: RowProps) => (
  <li className="row">
    {sign}
    <div className="about">
      <p className="name">{name}</p>
      {children}
      <p className="facts">{facts}</p>
    </div>
    {acts && <div className="acts">{acts}</div>}
  </li>
)

/** A named fact of a `facts-list`; one without a value is left out. */
export const Fact = ({ name, children }: { name: string; children: ReactNode }) =>
  children === '' || children === undefined ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
