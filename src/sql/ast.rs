//! The tree of one query: what the reader of Flink's grammar hands to everything that asks what a query means. Every
//! expression knows the bytes it was read from.

use super::lex::Span;
use super::types::SqlType;

/// An identifier without its back-quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

/// A query with its common tables, order and limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    pub ctes: Vec<Cte>,
    pub body: Body,
    pub order_by: Vec<OrderItem>,
    /// LIMIT, OFFSET or FETCH.
    pub limit: Option<Span>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Cte {
    pub name: Name,
    pub columns: Vec<Name>,
    pub query: Query,
}

/// What a query selects from.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    Nested(Box<Query>),
    /// `TABLE t`
    Table(Relation),
    /// Two or more operands, from left to right.
    Set {
        first: Box<Body>,
        rest: Vec<(SetOperator, Body)>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetOperator {
    pub kind: SetKind,
    pub all: bool,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetKind {
    Union,
    Intersect,
    Except,
}

impl SetKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Union => "UNION",
            Self::Intersect => "INTERSECT",
            Self::Except => "EXCEPT",
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Select {
    pub distinct: Option<Span>,
    pub items: Vec<Item>,
    pub from: Option<From>,
    pub filter: Option<Expr>,
    pub group_by: Option<GroupBy>,
    pub having: Option<Expr>,
    pub windows: Vec<(Name, Window)>,
    pub qualify: Option<Expr>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct GroupBy {
    pub span: Span,
    /// Expressions of all sets.
    pub keys: Vec<Expr>,
    /// GROUPING SETS, ROLLUP or CUBE.
    pub sets: bool,
}

/// One item of a select list.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// `*` or `t.*`
    Star {
        qualifier: Vec<Name>,
        span: Span,
    },
    Expr {
        expr: Expr,
        alias: Option<Name>,
    },
}

/// Tables in FROM and how they are joined, as a tree that leans to the left.
#[derive(Clone, PartialEq, Debug)]
pub struct From {
    pub first: TableRef,
    pub joins: Vec<Join>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Join {
    pub kind: JoinKind,
    pub natural: bool,
    pub table: TableRef,
    pub condition: Condition,
    /// The words of the join.
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    Comma,
    Cross,
    Inner,
    Left,
    Right,
    Full,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Condition {
    None,
    On(Expr),
    Using(Vec<Name>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct TableRef {
    pub relation: Relation,
    pub alias: Option<Name>,
    pub columns: Vec<Name>,
    pub span: Span,
}

/// What stands behind a table's alias.
#[derive(Clone, PartialEq, Debug)]
pub enum Relation {
    /// A name of one to three parts.
    Table {
        path: Vec<Name>,
        version: Option<Box<Expr>>,
    },
    /// `source()` or `ref()`: the name, as declared.
    Input {
        name: Name,
        version: Option<Box<Expr>>,
    },
    Derived {
        lateral: bool,
        query: Box<Query>,
    },
    Function {
        lateral: bool,
        call: Box<Call>,
    },
    Unnest {
        arrays: Vec<Expr>,
        ordinality: bool,
    },
    Joined(Box<From>),
    Pattern(Box<Pattern>),
}

/// `MATCH_RECOGNIZE`
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern {
    pub table: TableRef,
    pub partition: Vec<Expr>,
    pub order: Vec<OrderItem>,
    pub measures: Vec<(Expr, Name)>,
    /// ALL ROWS PER MATCH
    pub all_rows: bool,
    pub definitions: Vec<(Name, Expr)>,
    /// Variables of the pattern.
    pub variables: Vec<Name>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

/// `OVER (…)` or an entry of WINDOW.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Window {
    pub base: Option<Name>,
    pub partition: Vec<Expr>,
    pub order: Vec<OrderItem>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    pub node: Node,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Node {
    /// `a`, `t.a`, `t.a.b`
    Path(Vec<Name>),
    Literal(Literal),
    /// `INTERVAL '1' DAY`
    Interval,
    /// `+x`, `-x`
    Sign(Box<Expr>),
    Not(Box<Expr>),
    /// AND and OR over two or more operands.
    Logic(Vec<Expr>, Logic),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Between {
        expr: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    /// Operators of one precedence, from left to right.
    Arithmetic(Box<Expr>, Vec<(Operator, Expr)>),
    /// Any other test: LIKE, IS, IN a list, OVERLAPS, …
    Test(Vec<Expr>),
    InQuery {
        expr: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Exists(Box<Query>),
    /// `x = ANY (query)`
    Quantified {
        expr: Box<Expr>,
        query: Box<Query>,
        all: bool,
    },
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast {
        expr: Box<Expr>,
        target: SqlType,
        of_interval: bool,
    },
    Call(Box<Call>),
    Row(Vec<Expr>),
    Array(Vec<Expr>),
    /// Keys and values in turn.
    Map(Vec<Expr>),
    Multiset(Vec<Expr>),
    /// `x[i].f`
    Access(Box<Expr>, Vec<Access>),
    Subquery(Box<Query>),
    /// `ARRAY(query)`, `MULTISET(query)`, `MAP(query)`
    Collected(Box<Query>),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Access {
    Index(Expr),
    Field(Name),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Logic {
    And,
    Or,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    Concat,
    /// `MULTISET UNION` and its like.
    Multiset,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Literal {
    Null,
    Boolean,
    String,
    /// `X'…'`
    Binary,
    /// As written.
    Number(String),
    Date,
    Time,
    /// Digits behind the second.
    Timestamp {
        digits: u8,
    },
}

/// A function call of any kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Upper-cased when it has one part.
    pub name: String,
    pub name_span: Span,
    pub args: Vec<Arg>,
    /// `COUNT(*)`
    pub star: bool,
    pub distinct: bool,
    pub order_within: Vec<OrderItem>,
    pub filter: Option<Expr>,
    pub over: Option<Over>,
    /// `RETURNING type` of a JSON function.
    pub returning: Option<SqlType>,
    /// Unit of EXTRACT, FLOOR, CEIL, TIMESTAMPADD, TIMESTAMPDIFF; upper-cased.
    pub unit: Option<String>,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Over {
    Named(Name),
    Window(Window),
}

/// An argument, with its name if it has one.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// Upper-cased.
    pub name: Option<String>,
    pub value: ArgValue,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ArgValue {
    Expr(Expr),
    /// `TABLE t`, `TABLE t PARTITION BY k`, `(query)` of a table function.
    Table {
        table: TableRef,
        partition: Vec<Expr>,
        order: Vec<OrderItem>,
    },
    Descriptor(Vec<Name>),
    Model(Name),
    /// DEFAULT, and options that are words.
    Word,
}
