//! The parts of an expression at one query level.

use super::super::ast::*;

/// Every column or field that is named at this query level.
pub(super) fn paths<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e [Name])) {
    walk(expr, &mut |expr| {
        if let Node::Path(path) = &expr.node {
            visit(path);
        }
    });
}

/// Every expression of this query level, from the outside in.
pub(super) fn walk<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    visit(expr);
    children(expr, &mut |child| walk(child, visit));
}

/// The direct operands and arguments, without those of queries inside.
pub(super) fn children<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.node {
        Node::Path(_)
        | Node::Literal(_)
        | Node::Interval
        | Node::Exists(_)
        | Node::Subquery(_)
        | Node::Collected(_) => {}
        Node::Sign(operand) | Node::Not(operand) | Node::Cast { expr: operand, .. } => visit(operand),
        Node::InQuery { expr: operand, .. } | Node::Quantified { expr: operand, .. } => visit(operand),
        Node::Logic(operands, _)
        | Node::Test(operands)
        | Node::Row(operands)
        | Node::Array(operands)
        | Node::Map(operands)
        | Node::Multiset(operands) => operands.iter().for_each(visit),
        Node::Compare(_, a, b) => [a, b].into_iter().for_each(|part| visit(part)),
        Node::Between { expr, low, high, .. } => [expr, low, high].into_iter().for_each(|part| visit(part)),
        Node::Arithmetic(first, rest) => {
            visit(first);
            rest.iter().for_each(|(_, operand)| visit(operand));
        }
        Node::Case { operand, branches, otherwise } => {
            operand.iter().chain(otherwise).for_each(|part| visit(part));
            for (condition, result) in branches {
                visit(condition);
                visit(result);
            }
        }
        Node::Call(call) => {
            for argument in &call.args {
                if let ArgValue::Expr(expr) = &argument.value {
                    visit(expr);
                }
            }
        }
        Node::Access(operand, accesses) => {
            visit(operand);
            for access in accesses {
                if let Access::Index(index) = access {
                    visit(index);
                }
            }
        }
    }
}
